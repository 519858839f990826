package web

import (
	"net/http"
	"strings"
)

// Sender is the rule about which sites may send a request.
type Sender struct {
	// Own is our origin, such as https://tarry.example.
	Own string
	// Allowed are further origins.
	Allowed Origins
	// Form is for routes whose handler checks a CSRF token and whose GET only renders: they can be opened from anywhere.
	Form bool
}

// Allows says whether r may come from where it says it does. A client that is no browser sends neither Origin nor
// Sec-Fetch-Site and passes; a browser cannot leave both out of a state-changing request to another site.
func (s Sender) Allows(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	safe := Safe(r.Method)
	switch {
	case safe && s.Form:
		return true
	case len(origins) > 1:
		return false
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	ours := site == "" || site == "same-origin" || site == "none"
	switch origin {
	case "":
		return safe || ours
	case s.Own:
		return safe || ours
	case "null":
		// What a form on a page with Referrer-Policy: no-referrer sends, even to its own origin (Fetch, "append a request
		// Origin header"). Sec-Fetch-Site tells it from a sandboxed frame; where that is missing the CSRF token decides.
		return s.Form && (site == "" || site == "same-origin")
	default:
		return s.Allowed.Allow(origin)
	}
}

// Safe says whether the method changes nothing (RFC 9110 section 9.2.1).
func Safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// Prefetch says whether a browser fetches the page before anybody asked for it.
func Prefetch(r *http.Request) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		v := strings.ToLower(r.Header.Get(name))
		if strings.Contains(v, "prefetch") || strings.Contains(v, "preview") || strings.Contains(v, "prerender") {
			return true
		}
	}
	return false
}

// CORS lets pages of the allowed origins read answers, and answers their preflight requests; it stands before sign-in.
// Credentials are not allowed: cookies of ours are for our own pages.
func CORS(allowed Origins) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			origin := r.Header.Get("Origin")
			if origin == "" || allowed.Empty() {
				next.ServeHTTP(w, r)
				return
			}
			h := w.Header()
			h.Add("Vary", "Origin")
			if len(r.Header.Values("Origin")) > 1 || !allowed.Allow(origin) {
				next.ServeHTTP(w, r)
				return
			}
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", RequestIDHeader+", Link, Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Last-Event-ID, Idempotency-Key")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
