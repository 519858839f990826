package web

import (
	"net/http"
	"strings"
)

// Prefix lets clients write prefix, such as /api, before the paths that serves knows. All that comes after it sees the request
// without: sign-in, limits, logs and routes cannot tell the two apart, nor can they treat them differently.
func Prefix(prefix string, serves func(*http.Request) bool) Middleware {
	return func(next http.Handler) http.Handler {
		if prefix == "" {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if bare := without(prefix, r); bare != nil && serves(bare) {
				r = bare
			}
			next.ServeHTTP(w, r)
		})
	}
}

// without is r without the prefix, nil where it has none.
func without(prefix string, r *http.Request) *http.Request {
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || !strings.HasPrefix(path, "/") {
		return nil
	}
	raw := r.URL.RawPath
	if raw != "" {
		if raw, ok = strings.CutPrefix(raw, prefix); !ok {
			return nil // the prefix itself was escaped: somebody wants to be taken for something else
		}
	}
	out, u := *r, *r.URL
	u.Path, u.RawPath, out.URL = path, raw, &u
	return &out
}
