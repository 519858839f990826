package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"tarry/auth"
	"tarry/server/web"
)

// ModeOIDC is the mode of [OIDC].
const ModeOIDC = "oidc"

// Paths of sign-in.
const (
	// Path shows who is signed in, and begins a sign-in where nobody is.
	Path         = "/signin"
	CallbackPath = "/signin/callback"
	SignOutPath  = "/signout"
)

// Sessions keeps who is signed in where, and an audit log of that about the actor ([auth.WithActor]); servers behind one name
// share it. Package store has one. Ids are given as hashes.
type Sessions interface {
	// StartPersonSession keeps a new session and ends the one that it replaces, if there is one.
	StartPersonSession(ctx context.Context, idHash string, p auth.Person, lifetime time.Duration, replaces string) error
	// PersonSession returns a session that was used within idle, and counts as use; [auth.ErrNoSession] otherwise.
	PersonSession(ctx context.Context, idHash string, idle time.Duration) (auth.PersonSession, error)
	EndPersonSession(ctx context.Context, idHash string) error
	// RefuseSignIn notes that the actor has proven who they are, and may not come in.
	RefuseSignIn(ctx context.Context) error
	// SpendSignIn succeeds once for a state; [auth.ErrSpent] from then on.
	SpendSignIn(ctx context.Context, stateHash string, life time.Duration) error
}

// Sealer encrypts what lies with browsers. What was sealed for one place opens for that alone.
type Sealer interface {
	Seal(plain auth.Secret, place string) ([]byte, error)
	Open(cipher []byte, place string) (auth.Secret, error)
}

// OIDC signs people in at an OpenID provider: authorization code flow with state, nonce and PKCE (OpenID Connect Core
// section 3.1; RFC 9700).
type OIDC struct {
	Issuer   string
	ClientID string
	// ClientSecret is zero for a public client.
	ClientSecret auth.Secret
	// Scopes are asked for; openid must be among them.
	Scopes []string
	// Allow says who of the issuer's people may come in, by the claims of their ID tokens at sign-in. Required.
	Allow Allow
	// Idle ends a session that is not used for so long, Lifetime any session.
	Idle, Lifetime time.Duration
	// Key signs form tokens, at least [web.MinKey] bytes; servers behind one name share it.
	Key      auth.Secret
	Sessions Sessions
	Sealer   Sealer
	// HTTP reaches the issuer.
	HTTP *http.Client
	// Now is for tests; nil is the clock.
	Now func() time.Time
}

const sessionCookie = "tarry-session"

// people is the sign-in of people with browsers.
type people struct {
	OIDC

	public  *url.URL
	issuer  *issuer
	cookies web.Cookies
	csrf    *web.CSRF
	pages   *template.Template
	log     *slog.Logger
	limits  *web.Limits
	peers   Peers
}

// limited counts a sign-in that is begun; true when there were too many and the caller was told.
func (p *people) limited(w http.ResponseWriter, r *http.Request) bool {
	wait, ok := p.limits.Allow(web.SignIns, p.peers.Key(r))
	if !ok {
		web.RetryAfter(w, wait)
		p.fail(w, r, http.StatusTooManyRequests, "Too many sign-ins were begun from this network. Try again in a minute.", nil)
	}
	return !ok
}

func newPeople(c OIDC, public *url.URL, log *slog.Logger) (*people, error) {
	if c.Sessions == nil || c.Sealer == nil || c.HTTP == nil || c.Idle <= 0 || c.Lifetime <= 0 || len(c.Allow) == 0 {
		return nil, errors.New("a required field of OIDC is missing")
	}
	cookies := web.Cookies{Secure: public.Scheme == "https"}
	csrf, err := web.NewCSRF(c.Key, cookies)
	if err != nil {
		return nil, err //nolint:wrapcheck // New wraps
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &people{OIDC: c, public: public, issuer: newIssuer(c.Issuer, c.HTTP), cookies: cookies, csrf: csrf, pages: pages, log: log}, nil
}

func (p *people) mount(mux *http.ServeMux, signedIn web.Middleware) {
	mux.Handle("GET "+Path, signedIn(http.HandlerFunc(p.status)))
	mux.HandleFunc("GET "+CallbackPath, p.callback)
	mux.HandleFunc("GET "+SignOutPath, p.signedOut)
	mux.Handle("POST "+SignOutPath, signedIn(http.HandlerFunc(p.signOut)))
}

// caller is whoever has signed in with this browser.
func (p *people) caller(r *http.Request) (Principal, bool, *refusal) {
	id := p.cookies.Value(r, sessionCookie)
	if id.IsZero() {
		return Principal{}, false, &refusal{status: http.StatusUnauthorized, text: "sign in first"}
	}
	session, err := p.Sessions.PersonSession(r.Context(), hash(id.Reveal()), p.Idle)
	switch {
	case errors.Is(err, auth.ErrNoSession):
		return Principal{}, false, &refusal{status: http.StatusUnauthorized, text: "the session has ended; sign in again"}
	case err != nil:
		return Principal{}, false, &refusal{http.StatusServiceUnavailable, "read session: " + brief(err), "not available at the moment"}
	}
	return ofPerson(session.Person, ModeOIDC), true, nil
}

// enter gives the browser a session with a new id, whatever it had before: an id that somebody planted is worth nothing.
func (p *people) enter(w http.ResponseWriter, r *http.Request, who auth.Person) error {
	id, old := auth.NewSecret(rand.Text()+rand.Text()), p.cookies.Value(r, sessionCookie)
	replaces := ""
	if !old.IsZero() {
		replaces = hash(old.Reveal())
	}
	ctx := auth.WithActor(r.Context(), UserID(who.Issuer, who.Subject))
	if err := p.Sessions.StartPersonSession(ctx, hash(id.Reveal()), who, p.Lifetime, replaces); err != nil {
		return err //nolint:wrapcheck // the caller wraps
	}
	p.cookies.Set(w, sessionCookie, id, p.Lifetime)
	return nil
}

// hash is how a random id is stored: who reads the table cannot use it.
func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
