package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
)

// RequestIDHeader carries the request id in answers. In requests it is ignored: a caller's value could forge log lines
// of somebody else's request.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// RequestIDs gives each request a random id of 80 bits, in its context and in the answer's header.
func RequestIDs() Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := strings.ToLower(rand.Text()[:16])
			w.Header().Set(RequestIDHeader, id)
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
		})
	}
}

// RequestID returns the id of the request, or "" outside of [RequestIDs].
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string) // absent is empty
	return id
}
