package e2e_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
	"tarry/internal/demo"
)

const shopOnly = `services:
  - {name: shop, issuer: "ISSUER", client_id: shop-backend, apps: [assistant], return_url: "http://127.0.0.1:9/back"}
`

// A code for another device has no callback that a service could claim: whoever opens a link that asks a service's user could
// connect an account to that user, or of that user, and nobody would have looked who it was (RFC 8628 section 5.4). So a
// browser that has not signed in gets no code.
func TestGuestsGetNoDeviceCodes(t *testing.T) {
	t.Parallel()
	provider, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, provider.Start(""))
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	provider.AddClient(demo.Client{ID: "tv", AuthMethod: demo.AuthNone})
	o := single(call("whoami") + text("{{response.whoami.user}}"))
	o.open, o.provider = false, provider
	o.agents["assistant/root_agent.yaml"] += "      auth_credential: {auth_type: oauth2, oauth2: {client_id: tv}}\n      tarry: {issuer: \"" + provider.Issuer() + "\", grant: device_code}\n"
	p := newPeople(t, o, shopOnly)
	r := p.program("shop-backend").startAs("shop:ben", "assistant", map[string]string{"task": "Go."})
	link := p.waiting(r)

	eve := demo.NewBrowser()
	eve.StopAt = func(u *url.URL) bool { return u.Path == "/authorize" }
	page := p.visit(eve, link)
	require.Equal(t, "/authorize", page.URL.Path, "she is sent to sign in: %s", page.Text)
	require.Empty(t, provider.Secrets().DeviceCodes)
	require.Equal(t, "waiting_credential", r.status().State)
}

// The page of a guest says what is asked for, and nothing of who the user is: the link may be in other hands.
func TestGuestPageNamesNobody(t *testing.T) {
	t.Parallel()
	p := newPeople(t, single(call("whoami")+text("{{response.whoami.user}}")), shopOnly)
	shop := p.program("shop-backend")
	r := shop.startAs("shop:ben-4711", "assistant", map[string]string{"task": "Go."})
	link := p.waiting(r)
	page := p.visit(demo.NewBrowser(), link)
	require.Equal(t, http.StatusOK, page.Status)
	require.Contains(t, page.Title, "Connect to")
	require.NotContains(t, page.Body, "4711", page.Text)
	require.Empty(t, page.Header.Get("Location"))
	alice := demo.NewBrowser()
	p.visitAs(alice, p.URL()+"/signin", "alice")
	require.NotContains(t, p.visit(alice, link).Body, "4711")
	for _, path := range []string{"/connect/answer", "/connect/account"} {
		page, err := demo.NewBrowser().Open(t.Context(), p.URL()+path)
		require.NoError(t, err)
		require.NotEqual(t, http.StatusOK, page.Status, path)
	}
}

// A service claims a login with another account than the one that is connected: the old one stays, whatever comes after.
func TestClaimOfAnotherAccount(t *testing.T) {
	t.Parallel()
	const secret = demo.DefaultMark + "client-secret"
	provider, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, provider.Start(""))
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	o := single(call("whoami") + text("one") + call("whoami") + text("two"))
	o.provider = provider
	o.agents["assistant/root_agent.yaml"] += explicit("openIdConnect", "issuerUrl: "+provider.Issuer()+"\nscopes: [openid, email, tickets:read]\n")
	o.env = []string{"TARRY_SECRET_CLIENT=" + secret}
	p := newPeople(t, o, shopOnly)
	p.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.AnyAudience = true })
	provider.AddClient(demo.Client{ID: "by-hand", Secret: secret, AuthMethod: demo.AuthBasic, RedirectURIs: []string{p.URL() + oauth.CallbackPath(provider.Issuer())}})
	shop := p.program("shop-backend")
	claimed := func(r runHandle, account string) int {
		b := demo.NewBrowser()
		answer := p.toTool(b, p.waiting(r), "", account)
		b.StopAt = func(u *url.URL) bool { return u.Path == "/back" }
		page := p.visit(b, answer)
		require.Equal(t, "/back", page.URL.Path, page.Text)
		return shop.call("POST", "/apps/assistant/users/shop:ben/logins/claim", map[string]string{"nonce": page.URL.Query().Get("nonce")}, nil)
	}
	connected := func() string {
		var page struct {
			Accounts []struct{ ID, Account string }
		}
		require.Equal(t, http.StatusOK, shop.call("GET", "/apps/assistant/users/shop:ben/accounts", nil, &page))
		require.Len(t, page.Accounts, 1)
		return page.Accounts[0].Account
	}
	first := shop.startAs("shop:ben", "assistant", map[string]string{"task": "Go."})
	require.Equal(t, http.StatusOK, claimed(first, "alice"))
	require.Equal(t, "done", p.finished(first).InvocationStatus)
	provider.SetFaults(func(f *demo.Faults) { f.RefreshError = "invalid_request" })
	provider.RevokeAccessTokens()
	second := shop.startAs("shop:ben", "assistant", map[string]string{"task": "Again."})
	require.Equal(t, http.StatusConflict, claimed(second, "bob"))
	require.Equal(t, demo.Email("alice"), connected())
	require.Equal(t, "waiting_credential", second.status().State)
	require.Equal(t, http.StatusOK, claimed(second, "alice"), "the link is good for the account that is connected")
	require.Equal(t, "done", p.finished(second).InvocationStatus)
}
