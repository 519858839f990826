package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxErrorBody  = 64 << 10
	maxRetryAfter = 24 * time.Hour
)

// HTTPClient returns a copy of base for a provider's library: an answer that is not 2xx becomes an *[Error] before the
// library sees it, with the wait that its headers ask for, and no redirect is followed (the key would travel along).
// Without a transport in base a plain one is used, which takes no proxy from the environment.
func HTTPClient(provider string, base *http.Client) *http.Client {
	client := *base
	next := base.Transport
	if next == nil {
		next = &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}
	}
	client.Transport = statusTransport{provider: provider, next: next}
	return &client
}

type statusTransport struct {
	provider string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t statusTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, StatusError(t.provider, resp.StatusCode, resp.Header, ErrorReason(body), time.Now())
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the wrapped transport.
func (t statusTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// ErrorReason finds the provider's word for an error in an error object of Google's or OpenAI's form. The result is
// not yet safe to print; [StatusError] drops unknown words.
func ErrorReason(body []byte) string {
	type object struct {
		Status, Code, Type any
	}
	var answer struct {
		Error *object
		object
	}
	// Gemini answers some streaming errors with a list of one.
	body = []byte(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(body)), "["), "]"))
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	e := answer.object
	if answer.Error != nil {
		e = *answer.Error
	}
	for _, field := range []any{e.Status, e.Code, e.Type} {
		if s, ok := field.(string); ok && knownReason(s) != "" {
			return s
		}
	}
	return ""
}

// CallError turns what a provider's library returned into the error of a [Model]: an *Error that is already inside err,
// the context's error once ctx is done, or a new *Error whose text holds nothing of err. answered says whether any
// answer had arrived; without one an error that is not the network's was made before sending, so the request is wrong.
func CallError(ctx context.Context, provider string, answered bool, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", provider, ctx.Err())
	}
	kind, message := KindInvalid, "request could not be built"
	if text := networkMessage(err); text != "" {
		kind, message = KindNetwork, text
	} else if answered {
		kind, message = KindUnreadable, kindMessage(KindUnreadable)
	}
	return &Error{Kind: kind, Provider: provider, Message: message}
}

// networkMessage is empty if err is not a failure of the network.
func networkMessage(err error) string {
	var (
		dns     *net.DNSError
		network net.Error
	)
	switch {
	case errors.As(err, &dns):
		return "host name not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "connection broke off"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timed out"
	case errors.As(err, &network):
		return kindMessage(KindNetwork)
	default:
		return ""
	}
}

// retryAfter reads retry-after-ms (milliseconds, more exact and so first) and Retry-After (seconds or an HTTP date, RFC
// 9110 section 10.2.3). Values that are negative, past or no numbers count as absent; others are capped at a day.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, ok := positive(header.Get("Retry-After-Ms")); ok {
		return capped(ms, time.Millisecond)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, ok := positive(value); ok {
		return capped(seconds, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}

func positive(value string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return n, err == nil && n > 0
}

// capped compares before it converts: a huge number would overflow a Duration.
func capped(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
