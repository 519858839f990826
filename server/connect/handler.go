package connect

import (
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"tarry/auth"
	"tarry/server/web"
)

// Paths of the pages.
const (
	Path         = "/connect"
	AnswerPath   = "/connect/answer"
	AccountPath  = "/connect/account"
	CallbackPath = "/oauth/callback/"
)

// flowLife bounds a flow's cookie, whatever the flow says.
const flowLife = 15 * time.Minute

// Config of a [Handler].
type Config struct {
	// PublicURL is how browsers reach this server: https, or http on a loopback name; no path.
	PublicURL string
	Logins    Logins
	// ReturnTo lists the addresses that a browser may be sent to after completion, matched exactly; an ADK web UI's own
	// address belongs here. Empty: none.
	ReturnTo []string
	// Key signs form tokens, at least 32 bytes; servers behind one name share it. nil: a new one at each start.
	Key auth.Secret
	// Peer says who sent a request, for the limit on unknown states. nil: its address, which behind a proxy is the proxy's.
	Peer func(*http.Request) string
	// Limits bounds the answers that belong to no login; nil: as [web.DefaultRates] says.
	Limits *web.Limits
	Log    *slog.Logger
	// Now is for tests; nil is the clock.
	Now func() time.Time
}

// Handler serves the pages. Safe for concurrent use.
type Handler struct {
	origin   *url.URL
	logins   Logins
	returnTo []string
	csrf     *web.CSRF
	cookies  web.Cookies
	peer     func(*http.Request) string
	limits   *web.Limits
	pages    *template.Template
	log      *slog.Logger
	now      func() time.Time
}

// New checks c.
func New(c Config) (*Handler, error) {
	origin, err := publicOrigin(c.PublicURL)
	if err != nil {
		return nil, err
	}
	for _, address := range c.ReturnTo {
		if err := checkReturn(address); err != nil {
			return nil, fmt.Errorf("return address %q: %w", address, err)
		}
	}
	cookies := web.Cookies{Secure: origin.Scheme == "https"}
	csrf, err := web.NewCSRF(c.Key, cookies)
	if err != nil {
		return nil, fmt.Errorf("connect pages: %w", err)
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	h := &Handler{
		origin: origin, logins: c.Logins, returnTo: slices.Clone(c.ReturnTo), csrf: csrf, cookies: cookies,
		peer: c.Peer, limits: c.Limits, pages: pages, log: c.Log, now: c.Now,
	}
	if h.peer == nil {
		h.peer = func(r *http.Request) string { return web.ClientKey(r, nil) }
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.limits == nil {
		h.limits = web.NewLimits(web.DefaultRates(), h.now)
	}
	return h, nil
}

// Mount adds the routes to mux, each behind signIn, which must be the mode for forms: POST checks a CSRF token, and the
// callback the flow's cookie.
func (h *Handler) Mount(mux *http.ServeMux, signIn web.Middleware) {
	mux.Handle("GET "+Path, signIn(http.HandlerFunc(h.ask)))
	mux.Handle("POST "+Path, signIn(http.HandlerFunc(h.begin)))
	mux.Handle("POST "+AnswerPath, signIn(http.HandlerFunc(h.answer)))
	mux.Handle("POST "+AccountPath, signIn(http.HandlerFunc(h.account)))
	mux.Handle("GET "+CallbackPath+"{digest}", signIn(http.HandlerFunc(h.callback)))
}

// Link is the address of a request's page.
func (h *Handler) Link(requestID string) string {
	return h.origin.String() + Path + "?" + url.Values{"request": {requestID}}.Encode()
}

func publicOrigin(public string) (*url.URL, error) {
	u, err := url.Parse(public)
	if err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	switch {
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/"):
		return nil, errors.New("public URL must be a scheme and a host, without path, query or user")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopbackName(u.Hostname())):
		return nil, errors.New("public URL must be https, or http on a loopback name")
	}
	return &url.URL{Scheme: u.Scheme, Host: web.CanonicalHost(u.Scheme, u.Host)}, nil
}

func loopbackName(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
