package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Provider is an authorization server with pages: RFC 8414 metadata, authorization code with PKCE (OAuth 2.1), resource
// indicators (RFC 8707), iss (RFC 9207), dynamic registration (RFC 7591), refresh rotation, revocation (RFC 7009), clients that
// sign (RFC 7523) and ID tokens.
// It is safe for concurrent use.
type Provider struct {
	cfg    ProviderConfig
	pages  *template.Template
	mux    http.Handler
	listen listener
	cookie string // differs per provider: cookies do not know ports
	key    []byte // of the pages' CSRF tokens
	signer signer

	mu       sync.Mutex
	url      string
	faults   Faults
	onToken  func(ctx context.Context, grantType string)
	before   func(ctx context.Context, grantType string)
	offset   time.Duration
	clients  map[string]Client
	requests map[string]*authorization
	sessions map[string]string // browser cookie → user, empty before sign-in
	codes    map[string]*code
	access   map[string]*accessToken
	refresh  map[string]*refreshToken
	journal  journal
	devices  map[string]*device
	// assertionIDs are those that were used.
	assertionIDs []string
}

// NewProvider returns a provider that is not listening yet. An error means that its built-in pages are broken.
func NewProvider(cfg ProviderConfig) (*Provider, error) {
	cfg = cfg.withDefaults()
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	p := &Provider{
		cfg: cfg, pages: pages, url: strings.TrimSuffix(cfg.URL, "/"), faults: cfg.Faults,
		cookie: "demo_browser_" + strings.ToLower(rand.Text()[:8]), key: []byte(rand.Text()),
		clients: map[string]Client{}, requests: map[string]*authorization{}, sessions: map[string]string{},
		codes: map[string]*code{}, access: map[string]*accessToken{}, refresh: map[string]*refreshToken{},
		devices: map[string]*device{},
		journal: newJournal(),
	}
	for _, c := range cfg.Clients {
		p.AddClient(c)
	}
	p.mux = p.routes()
	return p, nil
}

// AddClient registers c beforehand or replaces the client of the same id.
func (p *Provider) AddClient(c Client) {
	if c.AuthMethod == "" {
		c.AuthMethod = AuthNone
		if c.Secret != "" {
			c.AuthMethod = AuthBasic
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c.ID] = c
	p.journal.secrets.ClientSecrets = appendNew(p.journal.secrets.ClientSecrets, c.Secret)
}

// Client returns a registered client.
func (p *Provider) Client(id string) (Client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[id]
	return c, ok
}

// Clients returns the ids of all clients, sorted.
func (p *Provider) Clients() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.clients))
}

// ForgetClients drops all registrations, as a provider does that cleans up; their grants are revoked.
func (p *Provider) ForgetClients() {
	p.RevokeAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.clients)
}

// Start listens on addr, which must be loopback; empty means the previous address or a free port. What was issued
// before survives a restart.
func (p *Provider) Start(addr string) error {
	url, err := p.listen.start(addr, p)
	if err != nil {
		return fmt.Errorf("start provider: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.url = url
	return nil
}

// Close stops listening and drops open connections. The provider can be started again.
func (p *Provider) Close() error { return p.listen.close() }

// URL is the base URL without a slash at its end; empty before Start.
func (p *Provider) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// Issuer is the issuer identifier.
func (p *Provider) Issuer() string { return p.URL() + p.cfg.IssuerPath }

// AuthorizeURL is the authorization endpoint. Like the three below it is for clients that do without discovery.
func (p *Provider) AuthorizeURL() string { return p.endpoint("/authorize") }

// TokenURL is the token endpoint.
func (p *Provider) TokenURL() string { return p.endpoint("/token") }

// RegistrationURL is the registration endpoint, whether or not it is switched on.
func (p *Provider) RegistrationURL() string { return p.endpoint("/register") }

// RevocationURL is the revocation endpoint.
func (p *Provider) RevocationURL() string { return p.endpoint("/revoke") }

func (p *Provider) endpoint(path string) string { return p.URL() + p.prefix() + path }

// prefix is the issuer's path without a slash at its end.
func (p *Provider) prefix() string { return strings.TrimSuffix(p.cfg.IssuerPath, "/") }

// SetBeforeToken sets a hook that runs after the code or refresh token was consumed and before the answer is written:
// the worst moment for a client to die. nil removes it. [Gate.Pass] fits.
func (p *Provider) SetBeforeToken(hook func(ctx context.Context, grantType string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = hook
}

// SetOnToken sets a hook that runs when a token request arrives, before anything is checked or consumed.
func (p *Provider) SetOnToken(hook func(ctx context.Context, grantType string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onToken = hook
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	p.mux.ServeHTTP(rec, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal.requests = append(p.journal.requests, Request{
		Time: p.now(), Method: r.Method, Path: r.URL.Path, Params: rec.params, Status: rec.status, Error: rec.oauthError,
	})
}

func (p *Provider) routes() http.Handler {
	prefix := p.prefix()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server"+prefix, p.oauthMetadata)
	mux.HandleFunc("GET /.well-known/openid-configuration"+prefix, p.oidcMetadata)
	if prefix != "" {
		mux.HandleFunc("GET "+prefix+"/.well-known/openid-configuration", p.oidcMetadata)
	}
	mux.HandleFunc("GET "+prefix+"/jwks", p.jwks)
	mux.HandleFunc("POST "+prefix+"/register", p.register)
	mux.HandleFunc("GET "+prefix+"/authorize", p.authorize)
	mux.HandleFunc("POST "+prefix+"/token", p.token)
	mux.HandleFunc("POST "+prefix+"/device_authorization", p.deviceAuthorization)
	mux.HandleFunc("GET "+prefix+"/device", p.devicePage)
	mux.HandleFunc("POST "+prefix+"/revoke", p.revoke)
	mux.HandleFunc("GET "+prefix+"/logout", p.logout)
	mux.HandleFunc("GET "+prefix+"/login", p.loginPage)
	mux.HandleFunc("POST "+prefix+"/login", p.login)
	mux.HandleFunc("GET "+prefix+"/consent", p.consentPage)
	mux.HandleFunc("POST "+prefix+"/consent", p.consent)
	mux.HandleFunc("GET "+prefix+"/style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "style.css", time.Time{}, bytes.NewReader(stylesheet))
	})
	return mux
}
