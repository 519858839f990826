package oauth_test

import (
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

// signedIn is a world at the demo's provider, which approves by itself for alice.
func signedIn(t *testing.T) (*world, *demo.Provider) {
	t.Helper()
	p, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true, AutoApprove: "alice"}})
	require.NoError(t, err)
	require.NoError(t, p.Start(""))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	p.AddClient(demo.Client{ID: "client", Secret: "s+cr/t:1", RedirectURIs: []string{"http://localhost:8080" + oauth.CallbackPath(p.Issuer())}})
	guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
	t.Cleanup(guarded.CloseIdleConnections)
	w := newWorld(t)
	w.clock = time.Now()
	w.another = func() *oauth.Service {
		return w.newService(func(c *oauth.Config) {
			c.HTTP = guarded.HTTP()
			c.Discover = &discovery.Discoverer{HTTP: guarded.HTTP(), AllowLoopback: true}
		})
	}
	w.service = w.another()
	return w, p
}

func idWant(p *demo.Provider) auth.Want {
	return auth.Want{Tool: "tool", Auth: agent.Auth{
		Key: "me", Type: agent.AuthOpenIDConnect, Issuer: p.Issuer(), ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}",
		Scopes: []string{"openid", "email"},
	}}
}

// visitAs is a login at the demo's provider.
func (w *world) visitAs(want auth.Want) (oauth.Result, error) {
	w.t.Helper()
	id := "req-" + random()
	w.ask(id, w.needOf(want))
	s, cookies := w.begin(id)
	cb := visit(w.t, s.RedirectURL)
	cb.Cookies = cookies
	return w.service.Complete(w.t.Context(), only(ann), cb)
}

func TestIDTokenOfALogin(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	_, err := w.visitAs(idWant(p))
	require.NoError(t, err)
	g := w.store.allGrants()[0]
	require.Equal(t, oauth.Account{Subject: demo.Subject("alice"), Label: "alice@ledger.example"}, g.Account)
	require.NotEmpty(t, g.IDToken)

	token, err := w.broker().Token(t.Context(), idWant(p))
	require.NoError(t, err)
	require.Contains(t, p.Secrets().IDTokens, token.IDToken.Reveal(), "a Go tool gets both")
	require.Contains(t, p.Secrets().AccessTokens, token.Access.Reveal())

	sends := idWant(p)
	sends.Auth.UseIDToken = true
	var scrub auth.Scrubber
	sent, err := w.service.Broker(ann, oauth.Use{}, &scrub).Token(t.Context(), sends)
	require.NoError(t, err, "the same login")
	require.Equal(t, token.IDToken.Reveal(), sent.Access.Reveal())
	require.NotContains(t, scrub.Scrub("they said "+sent.Access.Reveal()), sent.Access.Reveal())

	// What is sent is replaced in time, and the account stays.
	w.pass(time.Hour - 30*time.Second)
	p.Advance(time.Hour - 30*time.Second)
	next, err := w.broker().Token(t.Context(), sends)
	require.NoError(t, err)
	require.NotEqual(t, sent.Access.Reveal(), next.Access.Reveal())
	require.Contains(t, p.Secrets().IDTokens, next.Access.Reveal())
	require.Equal(t, g.Account, w.store.allGrants()[0].Account)
	for _, secret := range p.Secrets().All() {
		require.NotContains(t, w.logs.String(), secret)
	}
}

// Where an issuer is known, an ID token that it did not sign, or that is for somebody else, ends no login well.
func TestIDTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*demo.Faults) {
		return func(f *demo.Faults) { f.IDTokenClaims = map[string]any{name: value} }
	}
	for name, tc := range map[string]struct {
		spoil func(*demo.Faults)
		err   error
	}{
		"forged":          {func(f *demo.Faults) { f.ForgedIDToken = true }, oauth.ErrIdentity},
		"issuer":          {claim("iss", "https://evil.example"), oauth.ErrIdentity},
		"audience":        {claim("aud", "another"), oauth.ErrIdentity},
		"two audiences":   {claim("aud", []string{"client", "another"}), oauth.ErrIdentity},
		"for another":     {claim("azp", "another"), oauth.ErrIdentity},
		"over":            {claim("exp", time.Now().Add(-time.Minute).Unix()), oauth.ErrIdentity},
		"nonce":           {claim("nonce", "another"), oauth.ErrIdentity},
		"no nonce":        {claim("nonce", nil), oauth.ErrIdentity},
		"nobody":          {claim("sub", ""), oauth.ErrIdentity},
		"keys are away":   {func(f *demo.Faults) { f.NoJWKS = true }, auth.ErrUnavailable},
		"none, but asked": {func(f *demo.Faults) { f.NoIDToken = true }, auth.ErrMisconfigured},
	} {
		for kind, written := range map[string]bool{"discovered": false, "written": true} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w, p := signedIn(t)
				p.SetFaults(tc.spoil)
				want := idWant(p)
				want.Auth.UseIDToken = true
				if written {
					want.Auth.AuthorizationURL, want.Auth.TokenURL = p.AuthorizeURL(), p.TokenURL()
					p.AddClient(demo.Client{ID: "client", Secret: "s+cr/t:1", RedirectURIs: []string{"http://localhost:8080" + oauth.CallbackPath(oauth.CallbackIssuer(w.needOf(want).Provider))}})
				}
				out, err := w.visitAs(want)
				require.ErrorIs(t, err, tc.err)
				require.Equal(t, auth.StatusPending, out.Outcome, "the person may try again")
				require.Empty(t, w.store.allGrants())
				require.NotContains(t, w.logs.String(), "evil.example")
				for _, secret := range p.Secrets().All() {
					require.NotContains(t, err.Error()+w.logs.String(), secret)
				}

				p.SetFaults(func(f *demo.Faults) { *f = demo.Faults{OIDCMetadata: true, AutoApprove: "alice"} })
				_, err = w.visitAs(want)
				require.NoError(t, err)
			})
		}
	}
}

// A label that is no issuer vouches for nothing: the login works, and nobody is told whose it is.
func TestLabelIsNoIssuer(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	want := idWant(p)
	want.Auth.Issuer, want.Auth.AuthorizationURL, want.Auth.TokenURL = "", p.AuthorizeURL(), p.TokenURL()
	p.AddClient(demo.Client{ID: "client", Secret: "s+cr/t:1", RedirectURIs: []string{"http://localhost:8080" + oauth.CallbackPath(oauth.CallbackIssuer(w.needOf(want).Provider))}})
	p.SetFaults(func(f *demo.Faults) { f.ForgedIDToken = true })
	_, err := w.visitAs(want)
	require.NoError(t, err)
	require.Zero(t, w.store.allGrants()[0].Account)
	require.Empty(t, w.store.allGrants()[0].IDToken)
	token, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.True(t, token.IDToken.IsZero())
}

func TestIDTokensAtRefresh(t *testing.T) {
	t.Parallel()
	sends := func(p *demo.Provider) auth.Want {
		want := idWant(p)
		want.Auth.UseIDToken = true
		return want
	}
	for name, tc := range map[string]struct {
		spoil func(*demo.Faults)
		// ends says that the login does at once, by that reason.
		ends string
	}{
		"of another account": {func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"sub": demo.Subject("bob")} }, "dropped another account"},
		"forged":             {func(f *demo.Faults) { f.ForgedIDToken = true }, ""},
		"none":               {func(f *demo.Faults) { f.NoIDToken = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := signedIn(t)
			_, err := w.visitAs(sends(p))
			require.NoError(t, err)
			p.SetFaults(tc.spoil)
			w.pass(time.Hour - 30*time.Second)
			p.Advance(time.Hour - 30*time.Second)
			first, err := w.broker().Token(t.Context(), sends(p))
			if tc.ends != "" {
				require.Equal(t, p.Issuer(), required(t, err).Slot.Issuer)
				require.Contains(t, w.store.audits(), tc.ends)
				return
			}
			require.NoError(t, err, "the old one lives for half a minute")
			require.Equal(t, p.Secrets().IDTokens[0], first.Access.Reveal())
			w.pass(time.Minute)
			_, err = w.broker().Token(t.Context(), sends(p))
			n := required(t, err)
			require.True(t, n.IDToken)
			require.Equal(t, w.store.allGrants()[0].Version, n.Refused, "what is there is no answer")
			plain, err := w.broker().Token(t.Context(), idWant(p))
			require.NoError(t, err, "who sends the access token goes on")
			require.True(t, plain.IDToken.IsZero())
		})
	}
}

// A login without an ID token answers nobody who sends one.
func TestLoginWithoutIDTokenIsNotEnough(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	p.SetFaults(func(f *demo.Faults) { f.NoIDToken = true })
	_, err := w.visitAs(idWant(p))
	require.NoError(t, err)
	want := idWant(p)
	want.Auth.UseIDToken = true
	_, err = w.broker().Token(t.Context(), want)
	require.True(t, required(t, err).IDToken)
}
