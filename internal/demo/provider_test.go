package demo_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

func TestWholeLogin(t *testing.T) {
	t.Parallel()
	for _, method := range []string{demo.AuthNone, demo.AuthBasic, demo.AuthPost} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, demo.ProviderConfig{})
			a := newApp(t, p, method)
			require.NotEmpty(t, a.id)
			require.Equal(t, method == demo.AuthNone, a.secret == "")

			back := a.login(demo.NewBrowser(), "bob")
			require.Equal(t, "state-"+a.id, back.Get("state"))
			require.Equal(t, p.Issuer(), back.Get("iss"))

			first := a.redeem(back.Get("code"), nil)
			require.Equal(t, http.StatusOK, first.status, first.body)
			require.Equal(t, "no-store", first.header.Get("Cache-Control"))
			require.InDelta(t, 3600, first.fields["expires_in"], 0)
			token, ok := p.Verify(first.access)
			require.True(t, ok)
			require.Equal(t, "bob", token.User)
			require.Equal(t, resource, token.Resource)
			require.Equal(t, []string{demo.ScopeRead}, token.Scopes)

			second := a.renew(first.refresh, nil)
			require.Equal(t, http.StatusOK, second.status, second.body)
			require.NotEqual(t, first.refresh, second.refresh)

			counts := p.Counts()
			require.Equal(t, 1, counts.Authorize)
			require.Equal(t, 1, counts.Registrations)
			require.Equal(t, 1, counts.Logins)
			require.Equal(t, 1, counts.Approvals)
			require.Equal(t, map[string]int{"authorization_code": 1, "refresh_token": 1}, counts.TokenOK)

			secrets := p.Secrets()
			require.Equal(t, []string{first.access, second.access}, secrets.AccessTokens)
			require.Equal(t, []string{first.refresh, second.refresh}, secrets.RefreshTokens)
			require.Equal(t, []string{back.Get("code")}, secrets.Codes)
			require.Equal(t, []string{a.verifier}, secrets.Verifiers)
			require.Equal(t, []string{"state-" + a.id}, secrets.States)
			for _, s := range append(append(secrets.Codes, secrets.AccessTokens...), append(secrets.RefreshTokens, secrets.ClientSecrets...)...) {
				require.Contains(t, s, demo.DefaultMark)
			}
			require.Subset(t, secrets.All(), []string{first.access, a.verifier, "state-" + a.id})
		})
	}
}

func TestRefreshReuseRevokesTheGrant(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	first := a.redeem(a.code(), nil)
	second := a.renew(first.refresh, nil)
	_, ok := p.Verify(second.access)
	require.True(t, ok)

	require.Equal(t, "invalid_grant", a.renew(first.refresh, nil).err)
	require.Equal(t, "invalid_grant", a.renew(second.refresh, nil).err)
	_, ok = p.Verify(second.access)
	require.False(t, ok)
}

func TestParallelRefreshHasOneWinner(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	first := a.redeem(a.code(), nil)
	var wg sync.WaitGroup
	answers := make([]answer, 5)
	for i := range answers {
		wg.Go(func() { answers[i] = a.renew(first.refresh, nil) })
	}
	wg.Wait()
	won := 0
	for _, got := range answers {
		if got.err == "" {
			won++
		}
	}
	require.Equal(t, 1, won)
}

func TestCodeReuseRevokesTheTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	code := a.code()
	first := a.redeem(code, nil)
	require.Equal(t, "invalid_grant", a.redeem(code, nil).err)
	_, ok := p.Verify(first.access)
	require.False(t, ok)
	require.Equal(t, "invalid_grant", a.renew(first.refresh, nil).err)
}

func TestTokenRequestIsChecked(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	other := newApp(t, p, demo.AuthNone)
	code, granted := a.code(), a.redeem(a.code(), nil)
	tests := map[string]struct {
		refresh bool
		change  map[string]string
		err     string
	}{
		"unknown code":           {change: map[string]string{"code": "x"}, err: "invalid_grant"},
		"other client":           {change: map[string]string{"client_id": other.id}, err: "invalid_grant"},
		"unknown client":         {change: map[string]string{"client_id": "x"}, err: "invalid_client"},
		"secret of a public one": {change: map[string]string{"client_secret": "x"}, err: "invalid_client"},
		"other redirect URI":     {change: map[string]string{"redirect_uri": a.redirect() + "/"}, err: "invalid_grant"},
		"no redirect URI":        {change: map[string]string{"redirect_uri": ""}, err: "invalid_grant"},
		"other verifier":         {change: map[string]string{"code_verifier": strings.Repeat("x", 43)}, err: "invalid_grant"},
		"no verifier":            {change: map[string]string{"code_verifier": ""}, err: "invalid_grant"},
		"other resource":         {change: map[string]string{"resource": resource + "/"}, err: "invalid_target"},
		"no resource":            {change: map[string]string{"resource": ""}, err: "invalid_target"},
		"unknown grant":          {change: map[string]string{"grant_type": "password"}, err: "unsupported_grant_type"},
		"unknown refresh token":  {refresh: true, change: map[string]string{"refresh_token": "x"}, err: "invalid_grant"},
		"refresh, other client":  {refresh: true, change: map[string]string{"client_id": other.id}, err: "invalid_grant"},
		"refresh, resource":      {refresh: true, change: map[string]string{"resource": "https://other.example"}, err: "invalid_target"},
		"refresh, no resource":   {refresh: true, change: map[string]string{"resource": ""}, err: "invalid_target"},
		"refresh, wider scope":   {refresh: true, change: map[string]string{"scope": demo.ScopePublish}, err: "invalid_scope"},
	}
	for name, tt := range tests {
		got := a.redeem
		token := code
		if tt.refresh {
			got, token = a.renew, granted.refresh
		}
		require.Equal(t, tt.err, got(token, tt.change).err, name)
	}
	// None of these consumed anything.
	require.Empty(t, a.redeem(code, nil).err)
	require.Empty(t, a.renew(granted.refresh, nil).err)
}

func TestAuthorizeRequestIsChecked(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	tests := map[string]struct {
		change map[string]string
		err    string // empty: a page of the provider, no redirect
	}{
		"unknown client":       {change: map[string]string{"client_id": "x"}},
		"unknown redirect URI": {change: map[string]string{"redirect_uri": a.redirect() + "?x"}},
		"no redirect URI":      {change: map[string]string{"redirect_uri": ""}},
		"no challenge":         {change: map[string]string{"code_challenge": ""}, err: "invalid_request"},
		"plain challenge":      {change: map[string]string{"code_challenge_method": "plain"}, err: "invalid_request"},
		"no challenge method":  {change: map[string]string{"code_challenge_method": ""}, err: "invalid_request"},
		"short challenge":      {change: map[string]string{"code_challenge": "x"}, err: "invalid_request"},
		"token response":       {change: map[string]string{"response_type": "token"}, err: "unsupported_response_type"},
		"no resource":          {change: map[string]string{"resource": ""}, err: "invalid_target"},
		"relative resource":    {change: map[string]string{"resource": "/mcp"}, err: "invalid_target"},
		"fragment in resource": {change: map[string]string{"resource": resource + "#x"}, err: "invalid_target"},
		"unknown scope":        {change: map[string]string{"scope": "root"}, err: "invalid_scope"},
	}
	for name, tt := range tests {
		page, err := demo.NewBrowser().Open(t.Context(), a.authorizeURL(tt.change))
		require.NoError(t, err, name)
		if tt.err == "" {
			require.Equal(t, http.StatusBadRequest, page.Status, name)
			require.Equal(t, p.URL(), "http://"+page.URL.Host, name)
			continue
		}
		q := page.URL.Query()
		require.Equal(t, tt.err, q.Get("error"), name)
		require.Equal(t, "state-"+a.id, q.Get("state"), name)
		require.Equal(t, p.Issuer(), q.Get("iss"), name)
	}
}

func TestDenial(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	page, err := demo.NewBrowser().Deny(t.Context(), a.authorizeURL(nil), "alice", "alice-password")
	require.NoError(t, err)
	q := page.URL.Query()
	require.Equal(t, "access_denied", q.Get("error"))
	require.Equal(t, p.Issuer(), q.Get("iss"))
	require.Equal(t, "state-"+a.id, q.Get("state"))
	require.Empty(t, q.Get("code"))
	require.Equal(t, 1, p.Counts().Denials)
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthBasic)
	got := a.redeem(a.code(), nil)
	other := newApp(t, p, demo.AuthNone)

	require.Equal(t, http.StatusOK, other.post(t.Context(), p.RevocationURL(), url.Values{"token": {got.refresh}}).status)
	_, ok := p.Verify(got.access)
	require.True(t, ok, "another client's token is not its to revoke")

	require.Equal(t, http.StatusOK, a.post(t.Context(), p.RevocationURL(), url.Values{"token": {got.access}}).status)
	_, ok = p.Verify(got.access)
	require.False(t, ok)
	again := a.renew(got.refresh, nil)
	require.Equal(t, http.StatusOK, again.status)

	require.Equal(t, http.StatusOK, a.post(t.Context(), p.RevocationURL(), url.Values{"token": {again.refresh}}).status)
	_, ok = p.Verify(again.access)
	require.False(t, ok)
	require.Equal(t, "invalid_grant", a.renew(again.refresh, nil).err)
	require.Equal(t, 3, p.Counts().Revocations)
}

func TestExpiryAndWithdrawal(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.Faults{AccessTokenTTL: time.Minute}})
	a := newApp(t, p, demo.AuthNone)
	got := a.redeem(a.code(), nil)
	require.InDelta(t, 60, got.fields["expires_in"], 0)
	p.Advance(time.Minute)
	_, ok := p.Verify(got.access)
	require.False(t, ok)

	late := a.code()
	p.Advance(time.Hour)
	require.Equal(t, "invalid_grant", a.redeem(late, nil).err)

	got = a.renew(got.refresh, nil)
	p.RevokeAccessTokens()
	_, ok = p.Verify(got.access)
	require.False(t, ok)
	got = a.renew(got.refresh, nil)
	require.Empty(t, got.err)
	p.RevokeAll()
	require.Equal(t, "invalid_grant", a.renew(got.refresh, nil).err)
}

func TestRegistrationIsChecked(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	tests := map[string]struct {
		body map[string]any
		err  string
	}{
		"https":             {body: map[string]any{"redirect_uris": []string{"https://app.example/cb"}}},
		"none":              {body: map[string]any{}, err: "invalid_redirect_uri"},
		"http elsewhere":    {body: map[string]any{"redirect_uris": []string{"http://app.example/cb"}}, err: "invalid_redirect_uri"},
		"javascript":        {body: map[string]any{"redirect_uris": []string{"javascript:alert(1)"}}, err: "invalid_redirect_uri"},
		"fragment":          {body: map[string]any{"redirect_uris": []string{"https://app.example/#"}}, err: "invalid_redirect_uri"},
		"loopback as web":   {body: map[string]any{"redirect_uris": []string{"http://127.0.0.1/"}, "application_type": "web"}, err: "invalid_redirect_uri"},
		"unknown auth":      {body: map[string]any{"redirect_uris": []string{"https://a.example/"}, "token_endpoint_auth_method": "x"}, err: "invalid_client_metadata"},
		"without code flow": {body: map[string]any{"redirect_uris": []string{"https://a.example/"}, "grant_types": []string{"implicit"}}, err: "invalid_client_metadata"},
	}
	for name, tt := range tests {
		var got map[string]any
		status := a.postJSON(p.RegistrationURL(), tt.body, &got)
		if tt.err == "" {
			require.Equal(t, http.StatusCreated, status, name)
			require.Contains(t, got["client_secret"], demo.DefaultMark)
			continue
		}
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Equal(t, tt.err, got["error"], name)
	}
}
