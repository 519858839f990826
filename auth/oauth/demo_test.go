package oauth_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/internal/safehttp"
)

// TestDemoProvider logs in, uses, refreshes and loses a token at the demo's provider and MCP server, which nobody wrote
// for this test, through the guarded client.
func TestDemoProvider(t *testing.T) {
	t.Parallel()
	registered := []demo.Client{
		{ID: "basic client", Secret: "s+cr/t:1", AuthMethod: demo.AuthBasic},
		{ID: "post client", Secret: "s+cr/t:1", AuthMethod: demo.AuthPost},
		{ID: "public client"},
	}
	for name, tc := range map[string]struct {
		path   string
		faults demo.Faults
		auth   agent.Auth
	}{
		"dynamic client":           {},
		"issuer with a path":       {path: "/tenant"},
		"issuer with a slash":      {path: "/"},
		"OpenID metadata only":     {path: "/tenant", faults: demo.Faults{NoMetadata: true, OIDCMetadata: true}},
		"form-encoded answers":     {faults: demo.Faults{FormEncoded: true}},
		"no expires_in":            {faults: demo.Faults{NoExpiresIn: true}},
		"no rotation":              {faults: demo.Faults{NoRotation: true}},
		"no iss":                   {faults: demo.Faults{NoIss: true, NoIssMetadata: true}},
		"iss that is not promised": {faults: demo.Faults{NoIssMetadata: true}},
		"offline_access":           {faults: demo.Faults{RequireOfflineAccess: true}},
		"client with basic":        {auth: agent.Auth{Type: agent.AuthMCP, ClientID: "basic client", ClientSecret: "${env:TARRY_SECRET_CLIENT}"}},
		"client with post": {auth: agent.Auth{
			Type: agent.AuthMCP, ClientID: "post client", ClientSecret: "${env:TARRY_SECRET_CLIENT}", ClientAuth: "client_secret_post",
		}},
		"client without secret": {auth: agent.Auth{Type: agent.AuthMCP, ClientID: "public client"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.faults.AutoApprove = "alice"
			p, err := demo.NewProvider(demo.ProviderConfig{IssuerPath: tc.path, Faults: tc.faults, Clients: registered})
			require.NoError(t, err)
			require.NoError(t, p.Start(""))
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			m, err := demo.NewMCPServer(demo.MCPConfig{Provider: p})
			require.NoError(t, err)
			require.NoError(t, m.Start(""))
			t.Cleanup(func() { require.NoError(t, m.Close()) })
			guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
			t.Cleanup(guarded.CloseIdleConnections)

			w := newWorld(t)
			w.clock = time.Now()
			w.service = w.newService(func(c *oauth.Config) {
				c.HTTP = guarded.HTTP()
				c.Discover = &discovery.Discoverer{HTTP: guarded.HTTP(), AllowLoopback: true}
			})
			for _, c := range registered {
				c.RedirectURIs = []string{"http://localhost:8080" + oauth.CallbackPath(p.Issuer())}
				p.AddClient(c)
			}
			want := auth.Want{Auth: tc.auth, Server: m.URL(), Tool: "tool"}
			use := func() (auth.AccessToken, int, []string) {
				token, err := w.broker().Token(t.Context(), want)
				if !errors.Is(err, auth.ErrNoToken) {
					require.NoError(t, err)
				}
				status, header := call(t, m.URL(), token)
				return token, status, header
			}

			_, status, header := use()
			require.Equal(t, http.StatusUnauthorized, status)
			w.ask("R", required(t, w.broker().Challenged(t.Context(), want, auth.Challenge{Status: status, WWWAuthenticate: header})))
			s, cookies := w.begin("R")
			cb := visit(t, s.RedirectURL)
			cb.Cookies = cookies
			out, err := w.service.Complete(t.Context(), only(ann), cb)
			require.NoError(t, err)
			require.Equal(t, auth.StatusGranted, out.Outcome)
			require.Empty(t, out.Missing)

			token, status, header := use()
			require.Equal(t, http.StatusOK, status, header)
			for range 3 {
				w.pass(2 * time.Hour)
				b := w.broker()
				if token.Expires.IsZero() {
					require.NoError(t, b.Challenged(t.Context(), want, auth.Challenge{Status: 401, Used: token.Version}))
				}
				var next auth.AccessToken
				next, status, _ = use()
				require.Equal(t, http.StatusOK, status)
				require.Greater(t, next.Version, token.Version)
				token = next
			}

			p.RevokeAll()
			err = w.broker().Challenged(t.Context(), want, auth.Challenge{Status: 401, Used: token.Version})
			require.Equal(t, token.Version, required(t, err).Refused)
			for _, secret := range []string{demo.DefaultMark, cb.State, cb.Code} {
				require.NotContains(t, w.logs.String(), secret)
			}
		})
	}
}

// call sends an MCP request with a token.
func call(t *testing.T, server string, token auth.AccessToken) (int, []string) {
	t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server, strings.NewReader(initialize))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if !token.Access.IsZero() {
		req.Header.Set("Authorization", "Bearer "+token.Access.Reveal())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, resp.Header.Values("WWW-Authenticate")
}

// visit is the browser at a provider that approves by itself.
func visit(t *testing.T, redirect string) oauth.Callback {
	t.Helper()
	browser := demo.NewBrowser()
	browser.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.Path, "/oauth/callback/") }
	page, err := browser.Open(t.Context(), redirect)
	require.NoError(t, err)
	q := page.URL.Query()
	require.NotEmpty(t, q.Get("code"), page.URL.Path)
	return oauth.Callback{
		Digest: strings.TrimPrefix(page.URL.Path, "/oauth/callback/"), State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error"),
		Iss: q.Get("iss"), IssPresent: q.Has("iss"),
	}
}
