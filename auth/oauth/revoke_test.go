package oauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
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

// connectedWorld has a login of ann's at the demo's provider.
func connectedWorld(t *testing.T, want auth.Want, clients []demo.Client) (*world, *demo.Provider, *demo.MCPServer, auth.Want) {
	t.Helper()
	p, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}, Clients: clients})
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
		c.HTTP, c.Discover = guarded.HTTP(), &discovery.Discoverer{HTTP: guarded.HTTP(), AllowLoopback: true}
	})
	for _, c := range clients {
		c.RedirectURIs = []string{"http://localhost:8080" + oauth.CallbackPath(p.Issuer())}
		p.AddClient(c)
	}
	want.Server, want.Tool = m.URL(), "tool"
	_, err = w.broker().Token(t.Context(), want)
	require.ErrorIs(t, err, auth.ErrNoToken)
	status, header := call(t, m.URL(), auth.AccessToken{})
	w.ask("R", required(t, w.broker().Challenged(t.Context(), want, auth.Challenge{Status: status, WWWAuthenticate: header})))
	s, cookies := w.begin("R")
	cb := visit(t, s.RedirectURL)
	cb.Cookies = cookies
	_, err = w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	return w, p, m, want
}

func (w *world) account() oauth.Grant {
	w.t.Helper()
	page, err := w.service.Accounts(w.t.Context(), oauth.AccountQuery{User: ann.User, Limit: 10}, only(ann))
	require.NoError(w.t, err)
	require.Len(w.t, page.Grants, 1)
	return page.Grants[0]
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	registered := []demo.Client{
		{ID: "basic client", Secret: "s+cr/t:1", AuthMethod: demo.AuthBasic},
		{ID: "post client", Secret: "s+cr/t:1", AuthMethod: demo.AuthPost},
		{ID: "public client"},
	}
	for name, scheme := range map[string]agent.Auth{
		"dynamic client": {},
		"basic":          {Type: agent.AuthMCP, ClientID: "basic client", ClientSecret: "${env:TARRY_SECRET_CLIENT}"},
		"post":           {Type: agent.AuthMCP, ClientID: "post client", ClientSecret: "${env:TARRY_SECRET_CLIENT}", ClientAuth: "client_secret_post"},
		"public":         {Type: agent.AuthMCP, ClientID: "public client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, m, want := connectedWorld(t, auth.Want{Auth: scheme}, slices.Clone(registered))
			g := w.account()
			token, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)

			for _, other := range []agent.Owner{{App: ann.App, User: "eve"}, {App: "other", User: ann.User}} {
				_, err = w.service.Disconnect(t.Context(), other, g.ID, true)
				require.ErrorIs(t, err, oauth.ErrNotFound)
			}
			require.Zero(t, p.Counts().Revocations)

			out, err := w.service.Disconnect(t.Context(), ann, g.ID, true)
			require.NoError(t, err)
			require.True(t, out.Told, out.Reason)
			require.Equal(t, 2, p.Counts().Revocations)
			status, _ := call(t, m.URL(), token)
			require.Equal(t, http.StatusUnauthorized, status)
			_, err = w.broker().Token(t.Context(), want)
			require.True(t, errors.Is(err, auth.ErrNoToken) || required(t, err).Slot == g.Slot, "the next use asks again: %v", err)
			_, err = w.service.Disconnect(t.Context(), ann, g.ID, true)
			require.ErrorIs(t, err, oauth.ErrNotFound)
			require.NotContains(t, w.logs.String(), demo.DefaultMark)
		})
	}
}

// The provider may be down, know no revocation, or answer nonsense: that is told, and the account is gone here.
func TestDisconnectWithoutProvider(t *testing.T) {
	t.Parallel()
	w, p, _, _ := connectedWorld(t, auth.Want{}, nil)
	g := w.account()
	out, err := w.service.Disconnect(t.Context(), ann, g.ID, false)
	require.NoError(t, err)
	require.False(t, out.Told)
	require.Zero(t, p.Counts().Revocations)

	w, p, _, _ = connectedWorld(t, auth.Want{}, nil)
	require.NoError(t, p.Close())
	out, err = w.service.Disconnect(t.Context(), ann, w.account().ID, true)
	require.NoError(t, err)
	require.Equal(t, "unavailable", out.Reason)
	page, err := w.service.Accounts(t.Context(), oauth.AccountQuery{User: ann.User, Limit: 10}, only(ann))
	require.NoError(t, err)
	require.Empty(t, page.Grants)
}

// Whoever edits the row of a grant is sent neither its tokens nor the client's secret.
func TestRevocationGoesToTheIssuer(t *testing.T) {
	t.Parallel()
	w, p, _, _ := connectedWorld(t, auth.Want{}, nil)
	var stolen []string
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.URL.Path)
	}))
	t.Cleanup(evil.Close)
	w.store.edit(func(g *oauth.Grant) { g.Provider.RevocationEndpoint = evil.URL + "/revoke" })
	out, err := w.service.Disconnect(t.Context(), ann, w.account().ID, true)
	require.NoError(t, err)
	require.True(t, out.Told)
	require.Equal(t, 2, p.Counts().Revocations)
	require.Empty(t, stolen)

	w, p, _, _ = connectedWorld(t, auth.Want{}, nil)
	w.store.edit(func(g *oauth.Grant) { g.Slot.Issuer = strings.TrimSuffix(p.Issuer(), "/") + "/other" })
	out, err = w.service.Disconnect(t.Context(), ann, w.account().ID, true)
	require.NoError(t, err)
	require.False(t, out.Told)
	require.Zero(t, p.Counts().Revocations)
}
