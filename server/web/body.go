package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrNoBody is in the error of [Decode] when the body is empty; many of ADK's routes allow that.
var ErrNoBody = errors.New("empty body")

// RequestError is a request that cannot be served, with the fixed text that the caller may see. [Refuse] writes it,
// [Refusal] makes it.
type RequestError struct {
	Status int
	Text   string
	// Err is the cause; it is not shown.
	Err error
}

// Error implements error.
func (e *RequestError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// Refusal makes a [*RequestError] without a cause.
func Refusal(status int, format string, args ...any) error {
	return &RequestError{Status: status, Text: fmt.Sprintf(format, args...)}
}

// Cap limits every request body to maxBytes; reading more fails and closes the connection.
func Cap(maxBytes int64) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBytes)
			next.ServeHTTP(w, r)
		})
	}
}

// Decode reads one JSON value of at most maxBytes into v. Unknown fields are ignored, as ADK does; anything after the
// value is refused. Errors are [*RequestError]: 400 or 413. They never quote the body, which may hold a secret.
func Decode(r *http.Request, v any, maxBytes int64) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &RequestError{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("body is larger than %d bytes", large.Limit), Err: err}
		}
		return &RequestError{Status: http.StatusBadRequest, Text: "body could not be read", Err: err}
	}
	if len(body) == 0 {
		return &RequestError{Status: http.StatusBadRequest, Text: "body is empty", Err: ErrNoBody}
	}
	if TooDeep(body) {
		return Refusal(http.StatusBadRequest, "body nests deeper than %d objects and lists", MaxDepth)
	}
	if err := json.Unmarshal(body, v); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return &RequestError{Status: http.StatusBadRequest, Text: fmt.Sprintf("body is not valid JSON (byte %d)", syntax.Offset)}
		case errors.As(err, &kind):
			return &RequestError{Status: http.StatusBadRequest, Text: fmt.Sprintf("body has a value of the wrong type (byte %d)", kind.Offset)}
		default:
			return &RequestError{Status: http.StatusBadRequest, Text: "body does not fit"}
		}
	}
	return nil
}
