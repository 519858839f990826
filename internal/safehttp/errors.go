package safehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
)

// BlockedError says that a URL or the address behind it may not be reached. It is permanent: a retry is refused too,
// unless the name resolves differently by then.
//
// Its text names the host and nothing else of the URL, which may hold a code, a token or a password.
type BlockedError struct {
	// Host is the host of the URL without port, user or query; empty if the URL had none.
	Host string
	// Reason is a fixed phrase, safe to log and to show.
	Reason string
}

// Error implements error.
func (e *BlockedError) Error() string {
	if e.Host == "" {
		return "outbound request refused: " + e.Reason
	}
	return fmt.Sprintf("outbound request to %q refused: %s", e.Host, e.Reason)
}

// TooLargeError says that a response body was longer than the client reads.
type TooLargeError struct {
	// Host is the host that answered.
	Host string
	// Limit is the cap in bytes, counted after decompression.
	Limit int64
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("response of %q is larger than %d bytes", e.Host, e.Limit)
}

// Redact replaces the [url.Error] that http.Client puts around every error: its text repeats the whole URL, query
// string included, and so might carry a code or token into a log. The cause stays reachable for errors.Is and As.
// Errors of other kinds, and nil, are returned as they are.
func Redact(err error) error {
	var ue *url.Error
	if !errors.As(err, &ue) {
		return err
	}
	host := ""
	if u, perr := url.Parse(ue.URL); perr == nil {
		host = u.Hostname()
	}
	return &requestError{op: ue.Op, host: host, cause: ue.Err, timeout: ue.Timeout()}
}

// requestError is a url.Error without the URL.
type requestError struct {
	op, host string
	cause    error
	timeout  bool
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%s %q: %v", e.op, e.host, e.cause)
}

func (e *requestError) Unwrap() error { return e.cause }

// Timeout implements net.Error, as url.Error does.
func (e *requestError) Timeout() bool { return e.timeout }

// Temporary implements net.Error.
func (e *requestError) Temporary() bool { return e.timeout }

// quiet hides the text of transport errors that quote what the server sent, such as a malformed header line. Errors of
// the network, TLS and the context quote addresses and names only, and pass unchanged: http.Client looks at their type.
func quiet(err error) error {
	var (
		network net.Error
		blocked *BlockedError
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &network), errors.As(err, &blocked), errors.As(err, &cert),
		errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return &brokenError{cause: err}
}

// brokenError is a connection that broke or an answer that is not HTTP.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return "connection broken or response malformed" }

func (e *brokenError) Unwrap() error { return e.cause }
