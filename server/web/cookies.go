package web

import (
	"net/http"
	"strings"
	"time"

	"tarry/auth"
)

// Cookies sets and reads cookies that belong to one host. Names are given without prefix, or with the right one.
type Cookies struct {
	// Secure is for https: the __Host- prefix then keeps sibling domains from setting the cookie. Without it, which is for
	// http on loopback only, browsers would refuse prefix and attribute.
	Secure bool
}

// Name is the name on the wire.
func (c Cookies) Name(name string) string {
	const prefix = "__Host-"
	if c.Secure && !strings.HasPrefix(name, prefix) {
		return prefix + name
	}
	return name
}

// Set gives the browser a cookie for maxAge, rounded down to seconds; zero means until the browser closes. false when
// name or value cannot be a cookie. Lax, not strict: the redirect back from a provider and a link in a mail must carry it.
func (c Cookies) Set(w http.ResponseWriter, name string, value auth.Secret, maxAge time.Duration) bool {
	cookie := c.cookie(name, value.Reveal()) //nolint:gosec // see cookie
	cookie.MaxAge = int(maxAge / time.Second)
	if cookie.Valid() != nil {
		return false
	}
	http.SetCookie(w, cookie)
	return true
}

// Value returns the cookie's value; zero when there is none, or more than one, of which one could be planted.
func (c Cookies) Value(r *http.Request, name string) auth.Secret {
	found := r.CookiesNamed(c.Name(name))
	if len(found) != 1 {
		return auth.Secret{}
	}
	return auth.NewSecret(found[0].Value)
}

// Clear removes the cookie.
func (c Cookies) Clear(w http.ResponseWriter, name string) {
	cookie := c.cookie(name, "") //nolint:gosec // see cookie
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
}

func (c Cookies) cookie(name, value string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure is set on https; browsers refuse it on http
		Name: c.Name(name), Value: value, Path: "/",
		Secure: c.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}
