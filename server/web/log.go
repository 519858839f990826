package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"
)

// maxLoggedPath bounds what a caller can put into one log line.
const maxLoggedPath = 256

// AccessLog writes one line for each request: method, path without query, status, bytes, duration.
func AccessLog(log *slog.Logger) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &recorder{ResponseWriter: w}
			start := time.Now()
			ctx, method, path := r.Context(), r.Method, r.URL.Path
			defer func() {
				if len(path) > maxLoggedPath {
					path = path[:maxLoggedPath]
				}
				log.InfoContext(ctx, "request", "method", method, "path", path, "status", rec.code(),
					"bytes", rec.bytes, "duration_ms", time.Since(start).Milliseconds(), "request_id", RequestID(ctx))
			}()
			next.ServeHTTP(rec, r)
		})
	}
}

// Recover answers 500 when a handler panics. Where an answer has begun, a stream of [Streams] ends with a frame that says so, and
// any other connection is dropped: half an answer must not look whole. [http.ErrAbortHandler] passes: it is how a handler drops
// a connection.
func Recover(log *slog.Logger) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &recorder{ResponseWriter: w}
			ctx := r.Context()
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				log.ErrorContext(ctx, "handler panicked", "panic", panicText(p), "stack", string(debug.Stack()),
					"request_id", RequestID(ctx))
				switch {
				case rec.status == 0:
					Error(rec, r, http.StatusInternalServerError, panicked)
				case readsFrames(r) && rec.Header().Get("Content-Type") == eventStream:
					_, _ = rec.Write(append([]byte("\n\n"), FailureOf(r, 0, panicked).frame()...)) // a frame that was begun ends first
				default:
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(rec, r)
		})
	}
}

const panicked = "internal error"

// panicText shows the value only where the runtime made it: any other could hold part of a request.
func panicText(p any) string {
	var e runtime.Error
	if err, ok := p.(error); ok && errors.As(err, &e) {
		return e.Error()
	}
	return fmt.Sprintf("%T", p)
}

// recorder notes what was answered. Unwrap keeps [http.ResponseController] working through it.
type recorder struct {
	http.ResponseWriter

	status int
	bytes  int64
}

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p) //nolint:gosec // whoever writes says what it is
	r.bytes += int64(n)
	return n, err //nolint:wrapcheck // an io.Writer passes on what it wraps
}

// Flush lets event streams through to clients that look for [http.Flusher].
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush() // a Flusher has no error to give
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
