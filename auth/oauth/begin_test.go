package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

func query(t *testing.T, raw string) url.Values {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u.Query()
}

func TestBeginIsFreshEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	a, _ := w.begin("R")
	b, _ := w.begin("R")
	qa, qb := query(t, a.RedirectURL), query(t, b.RedirectURL)
	for _, name := range []string{"state", "code_challenge"} {
		require.NotEqual(t, qa.Get(name), qb.Get(name), name)
	}
	require.NotEqual(t, a.CookieName, b.CookieName)
	require.NotEqual(t, a.Cookie.Reveal(), b.Cookie.Reveal())
	require.Equal(t, w.now().Add(15*time.Minute), a.Expires)
	require.Equal(t, w.provider.mcp(), qa.Get("resource"))
	require.Equal(t, "read", qa.Get("scope"))
	require.Equal(t, "http://localhost:8080"+oauth.CallbackPath(w.provider.URL), qa.Get("redirect_uri"))

	// Nothing of it is in the store or the log in the clear.
	w.store.mu.Lock()
	stored := fmt.Sprintf("%+v %+v", w.store.flows, w.store.regs)
	for _, f := range w.store.flows {
		stored += string(f.Verifier) + string(f.Nonce) + string(f.ClientSecret) + fmt.Sprintf("%+v", *f)
	}
	w.store.mu.Unlock()
	for _, secret := range []string{qa.Get("state"), a.Cookie.Reveal()} {
		require.NotContains(t, stored, secret)
		require.NotContains(t, w.logs.String(), secret)
	}
}

func TestBeginIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(w *world, r *auth.Request)
		access auth.Access
		err    error
	}{
		"somebody else's": {access: only(agent.Owner{App: "app", User: "bob"}), err: oauth.ErrNotFound},
		"script as endpoint": {change: func(_ *world, r *auth.Request) {
			r.Need.Provider.AuthorizationEndpoint = "javascript:alert(1)"
		}, err: auth.ErrMisconfigured},
		"data as endpoint": {change: func(_ *world, r *auth.Request) {
			r.Need.Provider.AuthorizationEndpoint = "data:text/html,x"
		}, err: auth.ErrMisconfigured},
		"plain http": {change: func(_ *world, r *auth.Request) {
			r.Need.Provider.AuthorizationEndpoint = "http://as.example/authorize"
		}, err: auth.ErrMisconfigured},
		"user in the endpoint": {change: func(_ *world, r *auth.Request) {
			r.Need.Provider.AuthorizationEndpoint = "https://good.example@evil.example/"
		}, err: auth.ErrMisconfigured},
		"deadline over": {change: func(w *world, r *auth.Request) { r.Deadline = w.now() }, err: oauth.ErrClosed},
		"client secret not there": {change: func(_ *world, r *auth.Request) {
			r.Need.Slot.Client, r.Need.Client = "pre:x", auth.Client{ID: "x", Secret: "${env:TARRY_SECRET_OTHER}"}
		}, err: auth.ErrMisconfigured},
		"registration refused": {change: func(w *world, r *auth.Request) {
			r.Need.Provider.RegistrationEndpoint = w.provider.URL + "/nothing"
		}, err: auth.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := auth.Request{ID: "R", Owner: ann, Need: w.needOf(w.mcpWant())}
			if tc.change != nil {
				tc.change(w, &r)
			}
			w.store.ask(r)
			access := tc.access
			if access == nil {
				access = only(ann)
			}
			_, err := w.service.Begin(t.Context(), access, "R", "")
			require.ErrorIs(t, err, tc.err)
			require.Empty(t, w.store.flows)
		})
	}
	for status, want := range map[auth.Status]error{
		auth.StatusExchanging: oauth.ErrBusy, auth.StatusGranted: oauth.ErrClosed, auth.StatusDenied: oauth.ErrClosed, auth.StatusCancelled: oauth.ErrClosed,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(w.mcpWant()))
			w.store.setStatus("R", status)
			_, err := w.service.Begin(t.Context(), only(ann), "R", "")
			require.ErrorIs(t, err, want)
		})
	}
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.ask("R", w.needOf(w.mcpWant()))
		for range 8 {
			w.begin("R")
		}
		_, err := w.service.Begin(t.Context(), only(ann), "R", "")
		require.ErrorIs(t, err, oauth.ErrTooMany)
		w.pass(16 * time.Minute)
		w.begin("R")
	})
}

func TestAuthorizationParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.explicitWant()
	want.Auth.AuthorizationURL += "?tenant=7&state=fixed"
	want.Auth.AuthorizationParams = map[string]string{
		"access_type": "offline", "prompt": "consent",
		"state": "mine", "redirect_uri": "https://evil.example", "code_challenge": "x", "resource": "https://evil.example", "scope": "admin", "request_uri": "x",
	}
	w.ask("R", w.needOf(want))
	s, _ := w.begin("R")
	q := query(t, s.RedirectURL)
	require.Equal(t, "7", q.Get("tenant"))
	require.Equal(t, "offline", q.Get("access_type"))
	require.Equal(t, "consent", q.Get("prompt"))
	require.Equal(t, "read", q.Get("scope"))
	require.False(t, q.Has("request_uri"))
	for _, values := range q {
		require.Len(t, values, 1)
	}
	require.NotContains(t, s.RedirectURL, "evil")
	require.NotEqual(t, "mine", q.Get("state"))
}

func TestOfflineAccessIsAskedForWhereItIsOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.metadata = map[string]any{"scopes_supported": []string{"read", "offline_access"}}
	n := w.needOf(w.mcpWant())
	require.Equal(t, []string{"read"}, n.Scopes)
	w.ask("R", n)
	s, _ := w.begin("R")
	q := query(t, s.RedirectURL)
	require.Equal(t, "offline_access read", q.Get("scope"))
	require.Equal(t, "consent", q.Get("prompt"))
}

func TestNoScopesAreNoParameter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.noScopes = true
	w.ask("R", w.needOf(w.mcpWant()))
	s, _ := w.begin("R")
	require.False(t, query(t, s.RedirectURL).Has("scope"))
}

func TestCookieOnHTTPS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public := &url.URL{Scheme: "https", Host: "tarry.example", Path: "/base/"}
	w.service = w.newService(func(c *oauth.Config) { c.PublicURL = public })
	w.ask("R", w.needOf(w.mcpWant()))
	s, _ := w.begin("R")
	require.True(t, strings.HasPrefix(s.CookieName, "__Host-"))
	require.Equal(t, "https://tarry.example/base"+oauth.CallbackPath(w.provider.URL), query(t, s.RedirectURL).Get("redirect_uri"))
	require.Equal(t, "web", w.provider.register[0]["application_type"])
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := oauth.New(oauth.Config{})
	require.ErrorContains(t, err, "Store")
	w := newWorld(t)
	var cfg oauth.Config
	w.newService(func(c *oauth.Config) { cfg = *c })
	cfg.PublicURL = &url.URL{Scheme: "http", Host: "tarry.example"}
	_, err = oauth.New(cfg)
	require.ErrorContains(t, err, "https")
}

func TestDoubleClickRegistersOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.registerSecret = "client-secret-value"
	w.ask("R", w.needOf(w.mcpWant()))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _, _ = w.service.Begin(t.Context(), only(ann), "R", "") })
	}
	wg.Wait()
	require.Len(t, w.provider.register, 1)
}

func TestRegisteredClients(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{method}}
			if method != "none" {
				w.provider.registerSecret = "s e/c:r+et"
			}
			w.login(w.mcpWant())
			require.Equal(t, method, w.provider.register[0]["token_endpoint_auth_method"])
			form := w.provider.tokenRequests()[0]
			require.Equal(t, method == "client_secret_post", form.Has("client_secret"))
			require.Equal(t, method == "client_secret_basic", w.provider.auths[0] != "")
		})
	}
}

func TestForgottenRegistrationIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	w.provider.set(func(p *provider) { clear(p.clients) })
	_, err := w.service.Complete(t.Context(), only(ann), cb)
	var p *oauth.ProviderError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "invalid_client", p.Code)
	out, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Len(t, w.provider.register, 2)
}

func TestRegistrationSecretIsForItsTokenEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.registerSecret = "client-secret-value"
	n := w.needOf(w.mcpWant())
	w.ask("R", n)
	w.begin("R")
	n.Provider.TokenEndpoint = w.provider.URL + "/other"
	w.ask("S", n)
	w.begin("S")
	require.Len(t, w.provider.register, 2)
}

func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.mcpWant()
	w.login(want)
	err := w.broker().Challenged(t.Context(), want, auth.Challenge{
		Status: 403, Used: 1, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="write"`},
	})
	w.ask("R", required(t, err))
	before := len(w.store.audits())
	p, err := w.service.Page(t.Context(), only(ann), "R")
	require.NoError(t, err)
	host := strings.TrimPrefix(w.provider.URL, "http://")
	require.Equal(t, host, p.ProviderHost)
	require.Equal(t, host, p.ServerHost)
	require.Equal(t, []string{"read", "write"}, p.Scopes)
	require.Equal(t, []string{"write"}, p.New)
	require.Equal(t, "app", p.App)
	require.Equal(t, "tool", p.Tool)
	require.Len(t, w.store.audits(), before, "looking changes nothing")
	_, err = w.service.Page(t.Context(), only(agent.Owner{App: "app", User: "bob"}), "R")
	require.ErrorIs(t, err, oauth.ErrNotFound)
}

// A definition can give its own provider the name of another. The two have callback paths of their own, so that a code of
// one cannot be brought to the other (RFC 9700 section 4.4).
func TestProvidersOfOneNameHaveTheirOwnPaths(t *testing.T) {
	t.Parallel()
	const name = "https://id.example"
	path := func(p auth.Provider) string { return oauth.CallbackPath(oauth.CallbackIssuer(p)) }
	genuine := path(auth.Provider{Issuer: name, TokenEndpoint: "https://elsewhere.example/token", Discovered: true})
	require.Equal(t, oauth.CallbackPath(name), genuine)
	require.Equal(t, genuine, path(auth.Provider{Issuer: name, TokenEndpoint: name + "/token"}))
	require.NotEqual(t, genuine, path(auth.Provider{Issuer: name, TokenEndpoint: "https://evil.example/token"}))
}

// A provider that does not answer a registration holds up nobody else's login.
func TestSilentProviderHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := newProvider(t)
	w.ask("R", w.needOf(w.mcpWant()))
	w.ask("O", w.needOf(auth.Want{Server: other.mcp(), Tool: "tool", Toolset: "set"}))
	arrived, answer := make(chan struct{}), make(chan struct{})
	w.service = w.newService(func(c *oauth.Config) {
		client := *c.HTTP
		client.Transport = gated{next: c.HTTP.Transport, path: w.provider.URL + "/register", arrived: arrived, open: answer}
		c.HTTP = &client
	})
	done := make(chan error, 1)
	go func() {
		_, err := w.service.Begin(context.WithoutCancel(t.Context()), only(ann), "R", "")
		done <- err
	}()
	<-arrived
	_, err := w.service.Begin(t.Context(), only(ann), "O", "")
	require.NoError(t, err)
	close(answer)
	require.NoError(t, <-done)
}

// gated holds requests to one URL back.
type gated struct {
	next          http.RoundTripper
	path          string
	arrived, open chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (g gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() == g.path {
		close(g.arrived)
		<-g.open
	}
	return g.next.RoundTrip(r)
}
