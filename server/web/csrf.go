package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"

	"tarry/auth"
)

const (
	csrfCookie = "tarry-csrf"
	// MinKey is the least length of a [CSRF] key, in bytes.
	MinKey = 32
)

// CSRF makes tokens for forms: the HMAC of a random cookie and of what the form is about. Safe for concurrent use.
type CSRF struct {
	key     auth.Secret
	cookies Cookies
}

// NewCSRF uses key, which servers behind one name share; the zero secret makes one that dies with the process.
func NewCSRF(key auth.Secret, cookies Cookies) (*CSRF, error) {
	if key.IsZero() {
		made := make([]byte, MinKey)
		_, _ = rand.Read(made) // never fails (crypto/rand)
		key = auth.NewSecret(string(made))
	}
	if n := len(key.Reveal()); n < MinKey {
		return nil, fmt.Errorf("csrf key is %d bytes long, at least %d are needed", n, MinKey)
	}
	return &CSRF{key: key, cookies: cookies}, nil
}

// Token returns the token for a form about the given things, and sets the cookie unless the browser has one. A second
// page in another tab shares the cookie, so both forms work.
func (c *CSRF) Token(w http.ResponseWriter, r *http.Request, about ...string) string {
	cookie := c.cookies.Value(r, csrfCookie).Reveal()
	if len(cookie) != len(rand.Text()) {
		cookie = rand.Text()
		c.cookies.Set(w, csrfCookie, auth.NewSecret(cookie), 0)
	}
	return c.sign(cookie, about)
}

// Valid says whether token was made for this browser and the given things.
func (c *CSRF) Valid(r *http.Request, token string, about ...string) bool {
	cookie := c.cookies.Value(r, csrfCookie)
	return !cookie.IsZero() && hmac.Equal([]byte(token), []byte(c.sign(cookie.Reveal(), about)))
}

func (c *CSRF) sign(cookie string, about []string) string {
	mac := hmac.New(sha256.New, []byte(c.key.Reveal()))
	for _, part := range append([]string{"tarry.csrf.v1", cookie}, about...) {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
