package web

import (
	"net/http"
	"slices"
)

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler

// Chain wraps h so that the first middleware sees the request first.
func Chain(h http.Handler, through ...Middleware) http.Handler {
	for _, m := range slices.Backward(through) {
		h = m(h)
	}
	return h
}
