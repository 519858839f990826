package notify

import (
	"net/http"
	"strconv"
	"time"
)

// retries are the waits after failed attempts, of the specification; after the last one nothing is tried any more.
func retries() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// Status is what became of a delivery.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Failed    Status = "failed"
	// Gone: the endpoint answered 410, here or to another one, and gets nothing more until its URL changes.
	Gone Status = "gone"
)

// Outcome is what an attempt came to.
type Outcome struct {
	Status Status
	// Next is when to try again, where Status is Pending.
	Next time.Duration
	// Pause is how long the endpoint wants to be left alone.
	Pause time.Duration
	// Code is the HTTP status, 0 if there was no answer; Reason says in our words why it failed.
	Code   int
	Reason string
}

const maxPause = 24 * time.Hour

// judge says what an answer means; attempts is how often it was tried, this time included.
func judge(code int, h http.Header, attempts int) Outcome {
	out := Outcome{Status: Delivered, Code: code}
	switch {
	case code >= 200 && code < 300:
		return out
	case code == http.StatusGone:
		out.Status, out.Reason = Gone, "the endpoint is gone (410)"
		return out
	}
	out.Reason = "HTTP " + strconv.Itoa(code)
	if code == 0 {
		out.Reason = "no answer"
	}
	if code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusGatewayTimeout || code == http.StatusServiceUnavailable {
		out.Pause = retryAfter(h)
	}
	waits := retries()
	if attempts > len(waits) {
		out.Status = Failed
		return out
	}
	out.Status, out.Next = Pending, max(waits[attempts-1], out.Pause)
	return out
}

// retryAfter reads the header's seconds or date (RFC 9110 section 10.2.3); without one an endpoint that is overloaded is left
// alone for a little.
func retryAfter(h http.Header) time.Duration {
	const little = 10 * time.Second
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return min(time.Duration(min(n, int(maxPause/time.Second)))*time.Second, maxPause)
	}
	if when, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(when), 0), maxPause)
	}
	return little
}
