package oauth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

// RFC 8707: what the server calls itself goes to the provider byte for byte, from the first request to the last.
func TestResourceIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ server, resource string }{
		"path":             {"/mcp", "/mcp"},
		"slash of its own": {"/mcp", "/mcp/"},
		"slash of ours":    {"/mcp/", "/mcp"},
		"query":            {"/mcp?tenant=a%20b&x=1", "/mcp?tenant=a%20b&x=1"},
		"query of ours":    {"/mcp?tenant=1", "/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			resource := w.provider.URL + tc.resource
			w.provider.resource = resource
			want := auth.Want{Server: w.provider.URL + tc.server, Tool: "tool"}
			w.ask("R", w.needOf(want))
			s, cookies := w.begin("R")
			require.Equal(t, []string{resource}, query(t, s.RedirectURL)["resource"])
			cb := w.provider.approve(s.RedirectURL)
			cb.Cookies = cookies
			_, err := w.service.Complete(t.Context(), only(ann), cb)
			require.NoError(t, err)
			w.pass(2 * time.Hour)
			_, err = w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			require.Len(t, w.provider.tokenRequests(), 2)
			for _, form := range w.provider.tokenRequests() {
				require.Equal(t, []string{resource}, form["resource"])
			}
		})
	}
}

// Scopes of the first request: the challenge's, else all that the server lists, else none; offline_access only where the
// provider lists it, and never alone, which would take the place of its defaults.
func TestInitialScopes(t *testing.T) {
	t.Parallel()
	listed, without := []string{"read", "offline_access"}, []string{"read"}
	for name, tc := range map[string]struct {
		challenge string
		noScopes  bool
		provider  []string
		scope     string // empty: no parameter
	}{
		"challenge":                        {challenge: `Bearer scope="a b"`, provider: without, scope: "a b"},
		"challenge, unrelated to the list": {challenge: `Bearer scope="z"`, scope: "z"},
		"list":                             {challenge: "Bearer", provider: without, scope: "read"},
		"empty challenge":                  {challenge: `Bearer scope=""`, provider: without, scope: "read"},
		"nothing":                          {challenge: "Bearer", noScopes: true, provider: without},
		"challenge with offline_access":    {challenge: `Bearer scope="a"`, provider: listed, scope: "a offline_access"},
		"list with offline_access":         {challenge: "Bearer", provider: listed, scope: "offline_access read"},
		"nothing with offline_access":      {challenge: "Bearer", noScopes: true, provider: listed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.noScopes = tc.noScopes
			w.provider.metadata = map[string]any{"scopes_supported": tc.provider}
			err := w.broker().Challenged(t.Context(), w.mcpWant(), auth.Challenge{Status: 401, WWWAuthenticate: []string{tc.challenge}})
			w.ask("R", required(t, err))
			s, _ := w.begin("R")
			q := query(t, s.RedirectURL)
			require.Equal(t, tc.scope != "", q.Has("scope"))
			require.Equal(t, tc.scope, q.Get("scope"))
		})
	}
}

// A definition and the provider's documents disagree on a slash: the redirect URI that an operator was told to register
// is the one that is sent.
func TestSlashOfAnIssuerDoesNotMoveTheCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.mcpWant()
	want.Auth.ClientID, want.Auth.Issuer = "client", w.provider.URL+"/"
	w.provider.clients["client"] = ""
	n := w.needOf(want)
	require.Equal(t, w.provider.URL, n.Provider.Issuer)
	w.ask("R", n)
	s, _ := w.begin("R")
	require.Equal(t, "http://localhost:8080"+oauth.CallbackPath(want.Auth.Issuer), query(t, s.RedirectURL).Get("redirect_uri"))
	w.login(want)
}
