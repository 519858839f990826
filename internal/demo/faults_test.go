package demo_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	tests := map[string]struct {
		cfg    demo.ProviderConfig
		path   string
		status int
		check  func(t *testing.T, p *demo.Provider, m map[string]any)
	}{
		"default": {path: oauth, check: func(t *testing.T, p *demo.Provider, m map[string]any) {
			t.Helper()
			require.Equal(t, p.Issuer(), m["issuer"])
			require.Equal(t, p.URL()+"/token", m["token_endpoint"])
			require.Equal(t, []any{"S256"}, m["code_challenge_methods_supported"])
			require.Equal(t, true, m["authorization_response_iss_parameter_supported"])
			require.NotContains(t, m["scopes_supported"], demo.ScopeOffline)
		}},
		"no OIDC by default": {path: oidc, status: http.StatusNotFound},
		"path issuer":        {cfg: demo.ProviderConfig{IssuerPath: "/tenant"}, path: oauth, status: http.StatusNotFound},
		"path issuer, inserted": {cfg: demo.ProviderConfig{IssuerPath: "/tenant"}, path: oauth + "/tenant", check: func(t *testing.T, p *demo.Provider, m map[string]any) {
			t.Helper()
			require.Equal(t, p.URL()+"/tenant", m["issuer"])
			require.Equal(t, p.AuthorizeURL(), m["authorization_endpoint"])
		}},
		"slash issuer": {cfg: demo.ProviderConfig{IssuerPath: "/"}, path: oauth, check: func(t *testing.T, p *demo.Provider, m map[string]any) {
			t.Helper()
			require.Equal(t, p.URL()+"/", m["issuer"])
			require.Equal(t, p.URL()+"/token", m["token_endpoint"])
		}},
		"OIDC appended": {
			cfg:  demo.ProviderConfig{IssuerPath: "/t", Faults: demo.Faults{OIDCMetadata: true, NoMetadata: true}},
			path: "/t" + oidc, check: func(t *testing.T, p *demo.Provider, m map[string]any) {
				t.Helper()
				require.Equal(t, p.Issuer(), m["issuer"])
				require.NotEmpty(t, m["jwks_uri"])
			},
		},
		"switched off": {cfg: demo.ProviderConfig{Faults: demo.Faults{NoMetadata: true}}, path: oauth, status: http.StatusNotFound},
		"shapes": {
			cfg: demo.ProviderConfig{Faults: demo.Faults{
				NoRegistration: true, NoPKCEMetadata: true, NoIssMetadata: true, MetadataIssuer: "https://evil.example", RequireOfflineAccess: true,
			}},
			path: oauth, check: func(t *testing.T, _ *demo.Provider, m map[string]any) {
				t.Helper()
				require.Equal(t, "https://evil.example", m["issuer"])
				require.NotContains(t, m, "registration_endpoint")
				require.NotContains(t, m, "code_challenge_methods_supported")
				require.NotContains(t, m, "authorization_response_iss_parameter_supported")
				require.Contains(t, m["scopes_supported"], demo.ScopeOffline)
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.cfg)
			a := newApp(t, p, demo.AuthNone)
			got := a.get(p.URL() + tt.path)
			if tt.status != 0 {
				require.Equal(t, tt.status, got.status)
				return
			}
			require.Equal(t, http.StatusOK, got.status)
			tt.check(t, p, got.fields)
		})
	}
}

func TestTokenAnswerShapes(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}})
	a := newApp(t, p, demo.AuthNone)
	set := func(f demo.Faults) {
		f.AutoApprove = "alice"
		p.SetFaults(func(now *demo.Faults) { *now = f })
	}

	set(demo.Faults{NoExpiresIn: true, NoRefreshToken: true, ReplaceScopes: []string{demo.ScopeWrite}})
	got := a.redeem(a.code(), nil)
	require.NotContains(t, got.fields, "expires_in")
	require.NotContains(t, got.fields, "refresh_token")
	require.Equal(t, demo.ScopeWrite, got.fields["scope"])

	set(demo.Faults{NoRotation: true})
	got = a.redeem(a.code(), nil)
	for range 2 {
		again := a.renew(got.refresh, nil)
		require.Empty(t, again.err)
		require.Empty(t, again.refresh)
	}

	set(demo.Faults{TokenFailures: 2})
	require.Equal(t, http.StatusServiceUnavailable, a.renew(got.refresh, nil).status)
	require.Equal(t, http.StatusServiceUnavailable, a.renew(got.refresh, nil).status)
	require.Equal(t, http.StatusOK, a.renew(got.refresh, nil).status)
	require.Zero(t, p.Faults().TokenFailures)

	set(demo.Faults{TokenError: "server_error", ErrorWith200: true})
	bad := a.redeem("x", nil)
	require.Equal(t, http.StatusOK, bad.status)
	require.Equal(t, "server_error", bad.err)

	set(demo.Faults{RefreshError: "invalid_grant"})
	require.Equal(t, "invalid_grant", a.renew(got.refresh, nil).err)
	require.Empty(t, a.redeem(a.code(), nil).err)

	set(demo.Faults{RequireOfflineAccess: true})
	require.Empty(t, a.redeem(a.code(), nil).refresh)
	page, err := demo.NewBrowser().Open(t.Context(), a.authorizeURL(map[string]string{"scope": demo.ScopeRead + " " + demo.ScopeOffline}))
	require.NoError(t, err)
	require.NotEmpty(t, a.redeem(page.URL.Query().Get("code"), nil).refresh)

	set(demo.Faults{RejectResource: true})
	page, err = demo.NewBrowser().Open(t.Context(), a.authorizeURL(nil))
	require.NoError(t, err)
	require.Equal(t, "invalid_target", page.URL.Query().Get("error"))
}

func TestIssShapes(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}})
	a := newApp(t, p, demo.AuthNone)
	p.SetFaults(func(f *demo.Faults) { f.Iss = "https://evil.example" })
	require.Equal(t, "https://evil.example", a.login(demo.NewBrowser(), "alice").Get("iss"))
	p.SetFaults(func(f *demo.Faults) { f.Iss, f.NoIss = "", true })
	require.False(t, a.login(demo.NewBrowser(), "alice").Has("iss"))
}

func TestGitHubShape(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.GitHubShape()})
	a := newApp(t, p, demo.AuthPost)
	require.Empty(t, a.id, "there is no registration")
	a.id, a.secret = "planner", "planner-"+demo.DefaultMark+"secret"
	p.AddClient(demo.Client{ID: a.id, Secret: a.secret, AuthMethod: demo.AuthPost, RedirectURIs: []string{a.redirect()}})
	require.Contains(t, p.Secrets().All(), a.secret)

	page, err := demo.NewBrowser().Login(t.Context(), a.authorizeURL(map[string]string{
		"resource": "", "code_challenge": "", "code_challenge_method": "",
	}), "alice", "alice-password")
	require.NoError(t, err)
	code := page.URL.Query().Get("code")
	require.False(t, page.URL.Query().Has("iss"))

	got := a.redeem("wrong", map[string]string{"resource": "", "code_verifier": ""})
	require.Equal(t, http.StatusOK, got.status)
	form, err := url.ParseQuery(got.body)
	require.NoError(t, err)
	require.Equal(t, "invalid_grant", form.Get("error"))

	got = a.redeem(code, map[string]string{"resource": "", "code_verifier": ""})
	require.Contains(t, got.header.Get("Content-Type"), "application/x-www-form-urlencoded")
	form, err = url.ParseQuery(got.body)
	require.NoError(t, err)
	require.Contains(t, form.Get("access_token"), demo.DefaultMark)
	require.False(t, form.Has("expires_in"))
	require.False(t, form.Has("refresh_token"))

	// PKCE that is sent is checked.
	code = a.code()
	form, err = url.ParseQuery(a.redeem(code, map[string]string{"code_verifier": ""}).body)
	require.NoError(t, err)
	require.Equal(t, "invalid_grant", form.Get("error"))
}

func TestTokenEndpointCanBeHeld(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}})
	a := newApp(t, p, demo.AuthNone)
	code, gate := a.code(), demo.NewGate()
	p.SetBeforeToken(func(ctx context.Context, _ string) { gate.Pass(ctx) })
	done := make(chan answer, 1)
	go func() { done <- a.redeem(code, nil) }()
	<-gate.Arrived()
	require.Len(t, p.Secrets().AccessTokens, 1, "consumed and issued, not answered")
	select {
	case <-done:
		require.Fail(t, "answered although held")
	default:
	}
	gate.Open()
	require.Equal(t, http.StatusOK, (<-done).status)

	p.SetBeforeToken(nil)
	p.SetFaults(func(f *demo.Faults) { f.TokenDelay = 30 * time.Millisecond })
	start := time.Now()
	require.Empty(t, a.redeem(a.code(), nil).err)
	require.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
}

func TestProviderRestartsOnItsPort(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	got := a.redeem(a.code(), nil)
	before := p.Issuer()
	require.NoError(t, p.Close())
	a.http.CloseIdleConnections() // a POST is not sent again on a dead connection
	require.NoError(t, p.Start(""))
	require.Equal(t, before, p.Issuer())
	require.Empty(t, a.renew(got.refresh, nil).err)
	require.Error(t, p.Start(""), "it is running")

	outside, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.Error(t, outside.Start("0.0.0.0:0"))
}
