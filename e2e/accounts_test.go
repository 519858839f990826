package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/server/accounts"
)

// accountWorld has an assistant whose login says whose account it is.
func accountWorld(t *testing.T, steps string) *world {
	t.Helper()
	const secret = demo.DefaultMark + "client-secret"
	p, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, p.Start(""))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	o := single(steps)
	o.provider = p
	o.agents["assistant/root_agent.yaml"] += explicit("openIdConnect", "issuerUrl: "+p.Issuer()+"\nscopes: [openid, email, tickets:read]\n")
	o.env = []string{"TARRY_SECRET_CLIENT=" + secret}
	w := newWorld(t, o)
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.AnyAudience = true })
	p.AddClient(demo.Client{ID: "by-hand", Secret: secret, AuthMethod: demo.AuthBasic, RedirectURIs: []string{w.URL() + oauth.CallbackPath(p.Issuer())}})
	return w
}

func (w *world) accounts() []accounts.Account {
	w.t.Helper()
	var page accounts.Page
	require.Equal(w.t, http.StatusOK, w.api.call("GET", "/apps/assistant/users/user/accounts", nil, &page))
	return page.Accounts
}

// connectAs is a login in a browser of its own.
func (w *world) connectAs(link, user string) (*demo.Browser, *demo.Page) {
	w.t.Helper()
	b := demo.NewBrowser()
	page, err := b.Login(w.t.Context(), link, user, user+"-password")
	require.NoError(w.t, err)
	return b, page
}

// Whoever logs in again with another account is asked before it replaces the one before; the wrong upstream account never
// slips in (attack table, "wrong upstream account"). Then the account is seen, disconnected and asked for again.
func TestAccounts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := accountWorld(t, call("whoami")+text("one")+call("whoami")+text("two")+call("whoami")+text("three"))
	require.Empty(t, w.accounts())
	first := w.api.start("assistant", "Go.")
	_, page := w.connectAs(w.waiting(first), "alice")
	require.Equal(t, "Connected", page.Title)
	require.Equal(t, "done", w.finished(first).InvocationStatus)
	require.Len(t, w.accounts(), 1)
	alice := w.accounts()[0]
	require.Equal(t, demo.Email("alice"), alice.Account)
	require.NotZero(t, alice.LastUsed)

	// The server refuses the token, and the provider renews it no more: the person is asked again.
	w.provider.SetFaults(func(f *demo.Faults) { f.RefreshError = "invalid_request" })
	w.provider.RevokeAccessTokens()
	second := w.api.start("assistant", "Again.")
	link := w.waiting(second)
	_, page = w.connectAs(link, "bob")
	require.Equal(t, "Another account", page.Title)
	require.Contains(t, page.Body, demo.Email("alice"))
	require.Contains(t, page.Body, demo.Email("bob"))
	b, asked := w.connectAs(link, "bob")
	require.Equal(t, demo.Email("alice"), w.accounts()[0].Account)

	// Another browser, that has a form token of its own, decides nothing about this login.
	thief, theirs := w.connectAs(link, "bob")
	form := *theirs.Forms[0]
	form.Fields = asked.Forms[0].Fields
	form.Fields.Set("csrf", theirs.Forms[0].Fields.Get("csrf"))
	stolen, err := thief.Submit(ctx, theirs, &form, nil, form.Buttons[0])
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, stolen.Status)
	require.Equal(t, demo.Email("alice"), w.accounts()[0].Account)
	require.Equal(t, "waiting_credential", second.status().State)

	_, asked = w.reload(b, asked)
	kept, err := b.Press(ctx, asked, "keep")
	require.NoError(t, err)
	require.Equal(t, "Nothing was replaced", kept.Title)
	require.Equal(t, demo.Email("alice"), w.accounts()[0].Account)
	require.Equal(t, "waiting_credential", second.status().State)
	require.NotZero(t, w.provider.Counts().Revocations)

	b, asked = w.connectAs(link, "bob")
	done, err := b.Press(ctx, asked, "replace")
	require.NoError(t, err)
	require.Equal(t, "Connected", done.Title)
	require.Equal(t, "done", w.finished(second).InvocationStatus)
	require.Len(t, w.accounts(), 1)
	require.Equal(t, demo.Email("bob"), w.accounts()[0].Account)

	// On the page, and gone.
	b = demo.NewBrowser()
	list, err := b.Open(ctx, w.URL()+"/accounts")
	require.NoError(t, err)
	require.Contains(t, list.Body, demo.Email("bob"))
	before := w.provider.Counts().Revocations
	gone, err := b.Press(ctx, list, "revoke")
	require.NoError(t, err)
	require.Contains(t, gone.Body, "taken the access back")
	require.Contains(t, gone.Body, "Nothing is connected")
	require.Greater(t, w.provider.Counts().Revocations, before)
	require.Empty(t, w.accounts())
	third := w.api.start("assistant", "And again.")
	_, page = w.connectAs(w.waiting(third), "bob")
	require.Equal(t, "Connected", page.Title)
	require.Equal(t, "done", w.finished(third).InvocationStatus)

	// The log says all of it and who did it.
	seen := map[string]int{}
	query := "/audit?user=user&limit=7"
	for after := ""; ; {
		var log accounts.Log
		require.Equal(t, http.StatusOK, w.api.call("GET", query+"&after="+after, nil, &log))
		for _, e := range log.Entries {
			seen[e.Action]++
			if e.Action == "granted" || e.Action == "deleted" || e.Action == "parked" {
				require.Equal(t, "local", e.Actor, e)
			}
		}
		if after = log.Next; !log.More {
			break
		}
	}
	for _, action := range []string{"asked", "opened", "refused", "parked", "reopened", "granted", "used", "deleted", "revoked"} {
		require.NotZero(t, seen[action], action)
	}
	for _, path := range []string{"/audit?user=user", "/accounts?user=user", "/apps/assistant/users/user/accounts"} {
		body := (&recorder{http.DefaultTransport}).get(t, w.URL()+path)
		require.NotContains(t, string(body), demo.DefaultMark, path)
		for _, id := range w.provider.Secrets().IDTokens {
			require.NotContains(t, string(body), id, path)
		}
	}
	w.keepsQuiet(third)
}

// reload opens a page's own address once more.
func (w *world) reload(b *demo.Browser, page *demo.Page) (*demo.Browser, *demo.Page) {
	w.t.Helper()
	again, err := b.Open(w.t.Context(), page.URL.String())
	require.NoError(w.t, err)
	require.Equal(w.t, page.Title, again.Title)
	return b, again
}
