package signin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"tarry/auth"
	"tarry/server/web"
)

// Config of a [Gate]: one mode or several, of which each request uses one.
type Config struct {
	// PublicURL is how browsers reach this server.
	PublicURL *url.URL
	// OIDC signs people in with a browser; nil: not.
	OIDC *OIDC
	// JWT signs API clients in; nil: not.
	JWT *JWT
	// Proxy takes a proxy's word; nil: not.
	Proxy *Proxy
	// Services are applications that have users of their own. They need JWT.
	Services []Service
	// Guests finds users of services; nil: they cannot log in to tools.
	Guests Guests
	// Origins are further origins whose pages may call.
	Origins web.Origins
	Log     *slog.Logger
}

// Gate is the mode of servers that others reach. Safe for concurrent use.
type Gate struct {
	Config

	bearer *bearer
	people *people
	limits *web.Limits
	peers  Peers
}

var _ Mode = (*Gate)(nil)

// New checks c.
func New(c Config) (*Gate, error) {
	if c.PublicURL == nil || c.Log == nil {
		return nil, errors.New("sign-in: a required field of Config is missing")
	}
	if c.OIDC == nil && c.JWT == nil && c.Proxy == nil {
		return nil, errors.New("sign-in: no mode is configured")
	}
	g := &Gate{Config: c}
	if c.JWT != nil {
		g.bearer = newBearer(*c.JWT)
	}
	if c.OIDC != nil {
		var err error
		if g.people, err = newPeople(*c.OIDC, c.PublicURL, c.Log); err != nil {
			return nil, fmt.Errorf("sign-in: %w", err)
		}
	}
	return g, checkServices(c.Services)
}

// Mount adds the routes of sign-in and sign-out to mux.
func (g *Gate) Mount(mux *http.ServeMux) {
	if g.people != nil {
		g.people.mount(mux, g.Require(Forms))
	}
}

// Limit implements [Mode].
func (g *Gate) Limit(limits *web.Limits, peers Peers) {
	g.limits, g.peers = limits, peers
	if g.people != nil {
		g.people.limits, g.people.peers = limits, peers
	}
}

// Require implements [Mode].
func (g *Gate) Require(route Route) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if no := g.otherSite(r, route); no != nil {
				g.refuse(w, r, route, no)
				return
			}
			caller, ambient, no := g.known(w, r, route)
			if no != nil && no.status == http.StatusUnauthorized && !g.mayFail(w, r) {
				return
			}
			if no == nil && ambient {
				no = notJSON(r, route)
			}
			switch {
			case no != nil && no.status != http.StatusUnauthorized:
				g.refuse(w, r, route, no)
			case no == nil:
				next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), caller)))
			case route == Forms && g.people != nil && r.Method == http.MethodGet && no.reason == "":
				g.people.begin(w, r, r.URL.RequestURI())
			default:
				g.challenge(w, no)
				g.refuse(w, r, route, no)
			}
		})
	}
}

// mayFail counts a token that is not valid; false when there were too many and the caller was told. Those that are valid are
// served all the same: they may come from behind the same address.
func (g *Gate) mayFail(w http.ResponseWriter, r *http.Request) bool {
	if _, sent := bearerToken(r); !sent || g.bearer == nil {
		return true
	}
	wait, ok := g.limits.Allow(web.Tokens, g.peers.Key(r))
	if !ok {
		web.TooMany(w, asJSON(r), wait)
	}
	return ok
}

// known is [Gate.identify], and before that the browsers of services' users: whether somebody has signed in here as well, in
// the same browser, says nothing about who they are there.
func (g *Gate) known(w http.ResponseWriter, r *http.Request, route Route) (Principal, bool, *refusal) {
	if route == Forms {
		if p, ok := g.guest(w, r); ok {
			return p, true, nil
		}
	}
	return g.identify(r)
}

// identify says who sent r. ambient is for credentials that a browser adds by itself, also to what another site sends.
func (g *Gate) identify(r *http.Request) (p Principal, ambient bool, no *refusal) {
	proxied, no := g.proxied(r)
	if no != nil {
		return p, false, no
	}
	if token, ok := bearerToken(r); ok && g.bearer != nil {
		p, no = g.client(r, token)
		return p, false, no
	}
	if proxied.Subject != "" {
		return ofPerson(proxied, ModeProxy), true, nil
	}
	if g.people != nil {
		return g.people.caller(r)
	}
	return p, false, &refusal{status: http.StatusUnauthorized, text: "sign in first"}
}

func (g *Gate) proxied(r *http.Request) (auth.Person, *refusal) {
	if g.Proxy == nil {
		return auth.Person{}, nil
	}
	return g.Proxy.person(r)
}

// client is the principal of a bearer token.
func (g *Gate) client(r *http.Request, token string) (Principal, *refusal) {
	if token == "" {
		return Principal{}, &refusal{http.StatusUnauthorized, "authorization header has no bearer token", "the Authorization header must be: Bearer, one space, the token"}
	}
	c, err := g.bearer.verify(r.Context(), token)
	switch {
	case errors.Is(err, errUnavailable):
		return Principal{}, &refusal{http.StatusServiceUnavailable, err.Error(), "the issuer of the token cannot be reached at the moment"}
	case err != nil:
		return Principal{}, &refusal{http.StatusUnauthorized, err.Error(), "the bearer token is not valid here; the server's log says why, under this request id"}
	}
	for _, s := range g.Services {
		if s.is(c) {
			return s.principal(c), nil
		}
	}
	if !c.allowed {
		return Principal{}, &refusal{http.StatusForbidden, errNotAllowed.Error(), "whom this token is about may not use this server; ask its operator"}
	}
	return ofPerson(c.Person, ModeJWT), nil
}

// otherSite refuses what a page of another site sends, whatever credentials it has.
func (g *Gate) otherSite(r *http.Request, route Route) *refusal {
	if (web.Sender{Own: origin(g.PublicURL), Allowed: g.Origins, Form: route == Forms}).Allows(r) {
		return nil
	}
	return otherOrigin()
}

// challenge says how to sign in (RFC 9110 section 11.6.1; RFC 6750 section 3).
func (g *Gate) challenge(w http.ResponseWriter, no *refusal) {
	switch {
	case g.bearer == nil:
		w.Header().Set("WWW-Authenticate", `Cookie realm="tarry"`)
	case no.reason == "": // nothing was sent: no error is told (RFC 6750 section 3.1)
		w.Header().Set("WWW-Authenticate", `Bearer realm="tarry"`)
	default:
		w.Header().Set("WWW-Authenticate", `Bearer realm="tarry", error="invalid_token"`)
	}
}

func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, route Route, no *refusal) {
	if no.reason != "" {
		g.Log.WarnContext(r.Context(), "request refused", "reason", no.reason, "request_id", web.RequestID(r.Context()))
	}
	if route == API {
		r = asJSON(r)
	}
	web.Error(w, r, no.status, no.text)
}

// asJSON is for answers to clients of an API: they read JSON, whatever they say that they accept.
func asJSON(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	return r
}

// origin is a URL's, as browsers write it.
func origin(u *url.URL) string { return u.Scheme + "://" + web.CanonicalHost(u.Scheme, u.Host) }

// Peers says who sends requests, through proxies that are trusted to say so.
type Peers []netip.Prefix

// Key names the client of r, for rate limits.
func (p Peers) Key(r *http.Request) string { return web.ClientKey(r, p) }
