package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
)

//go:embed style.css
var stylesheet string

// Stylesheet is the one style sheet of all pages. It stands between <style> and </style> with nothing added: the policy
// of [PageHeaders] allows exactly these bytes.
func Stylesheet() template.CSS {
	return template.CSS(stylesheet) //nolint:gosec // embedded, not input
}

// PageHeaders sets the headers of a page: not stored, no referrer, no script, no frame. sendsForm is for pages whose form
// is answered with a redirect to somebody else's host: browsers apply form-action to that redirect too, so such a page
// cannot have the directive; all others allow no form at all. There is no Cross-Origin-Opener-Policy, which would cut a
// popup off from the window that waits for it.
func PageHeaders(h http.Header, sendsForm bool) {
	sum := sha256.Sum256([]byte(stylesheet))
	csp := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; frame-ancestors 'none'"
	if !sendsForm {
		csp += "; form-action 'none'"
	}
	h.Set("Content-Security-Policy", csp)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// SecurityHeaders sets what suits every answer; handlers may overwrite it. JSON cannot be pulled into another site's
// page as a script or an image.
func SecurityHeaders() Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Content-Security-Policy", "frame-ancestors 'none'")
			h.Set("Referrer-Policy", "no-referrer")
			next.ServeHTTP(w, r)
		})
	}
}
