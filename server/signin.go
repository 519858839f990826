package server

import (
	"fmt"
	"net/http"

	"tarry/auth"
	"tarry/auth/vault"
	"tarry/internal/wiring"
	"tarry/server/signin"
	"tarry/server/web"
)

// SignIn makes a mode of c and gives it what all servers share: sessions, keys and the guarded client.
func SignIn(parts *wiring.Parts, c signin.Config) (signin.Mode, error) {
	if c.OIDC != nil {
		c.OIDC.Sessions, c.OIDC.Sealer, c.OIDC.HTTP, c.OIDC.Key = parts.Store, sealer{parts.Vault}, parts.HTTP.HTTP(), parts.FormKey
	}
	if c.JWT != nil {
		c.JWT.HTTP = parts.HTTP.HTTP()
	}
	c.Guests = guests{parts}
	gate, err := signin.New(c)
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	return gate, nil
}

// sealer puts the vault behind the sign-in.
type sealer struct{ vault *vault.Vault }

const signInColumn = "sign-in"

// Seal implements [signin.Sealer].
func (s sealer) Seal(plain auth.Secret, place string) ([]byte, error) {
	out, err := s.vault.Seal(plain, vault.AD{Row: place, Column: signInColumn})
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out, nil
}

// Open implements [signin.Sealer].
func (s sealer) Open(cipher []byte, place string) (auth.Secret, error) {
	out, err := s.vault.Open(cipher, vault.AD{Row: place, Column: signInColumn})
	if err != nil {
		return auth.Secret{}, fmt.Errorf("open: %w", err)
	}
	return out, nil
}

// ofOperators is for what tells about everybody: the one operator of a server without sign-in, and services, which an operator
// has listed by name.
func ofOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := signin.FromContext(r.Context()); p.Mode != signin.ModeNone && (p.Mode != signin.ModeJWT || p.Service == "") {
			web.Error(w, r, http.StatusForbidden, "only a service may read this; list the one that collects metrics in TARRY_SERVICES")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// operator is for what tells about apps more than whoever uses them need know.
func operator(r *http.Request) bool { return signin.FromContext(r.Context()).Mode == signin.ModeNone }

// me says who is calling.
func me(w http.ResponseWriter, r *http.Request) {
	p := signin.FromContext(r.Context())
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, struct {
		// User is the id to use in paths; empty for a service.
		User string `json:"user,omitempty"`
		Name string `json:"name"`
		Mode string `json:"mode"`
		// Service is the name of a service; the ids of its users begin with it and a colon.
		Service string `json:"service,omitempty"`
	}{p.User, p.Name, p.Mode, p.Service})
}
