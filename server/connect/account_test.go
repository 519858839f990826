package connect_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/server/connect"
)

// Another account than the one before is shown with both names, and goes on by a form of this browser's and person's alone.
func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	h.result = connect.Result{
		Outcome: auth.StatusPending, RequestID: "adk-r1", App: "planner", Correlator: "corr",
		Change: &connect.Change{Flow: "f1", Replaces: "g1", From: "ann@example.com", To: "<b>eve\u202e@example.com", ProviderHost: "provider.example"},
	}
	asked := h.get(t, "/oauth/callback/"+digest+"?state=s&code=c")
	requirePage(t, asked, http.StatusOK, "Another account")
	require.Contains(t, asked.body, "ann@example.com")
	require.Contains(t, asked.body, "&lt;b&gt;eve\ufffd@example.com")
	require.NotContains(t, asked.body, "\u202e")
	form := func(change ...string) url.Values {
		out := url.Values{"request": {asked.field("request")}, "csrf": {asked.field("csrf")}, "flow": {asked.field("flow")}, "replaces": {asked.field("replaces")}, "action": {"replace"}}
		for i := 0; i < len(change); i += 2 {
			out.Set(change[i], change[i+1])
		}
		return out
	}
	for name, wrong := range map[string]url.Values{
		"no token": form("csrf", ""), "another request's": form("request", "adk-r2"), "no action": form("action", ""), "another action": form("action", "accept"),
	} {
		requirePage(t, h.post(t, "/connect/account", wrong, nil), http.StatusForbidden, "Page out of date")
		require.Empty(t, h.choices, name)
	}
	elsewhere := h.post(t, "/connect/account", form(), func(_ url.Values, r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
	require.Equal(t, http.StatusForbidden, elsewhere.StatusCode)
	require.Empty(t, h.choices)

	// The account before has changed meanwhile: asked once more.
	requirePage(t, h.post(t, "/connect/account", form(), nil), http.StatusOK, "Another account")
	require.Equal(t, "f1 g1", h.choices[0].Flow+" "+h.choices[0].Replaces)
	require.True(t, h.choices[0].Replace)

	h.result.Change = nil
	kept := h.post(t, "/connect/account", form("action", "keep"), nil)
	requirePage(t, kept, http.StatusOK, "Nothing was replaced")
	require.Contains(t, kept.body, "/connect?request=adk-r1")
	require.False(t, h.choices[1].Replace)

	h.result.Outcome = auth.StatusGranted
	requirePage(t, h.post(t, "/connect/account", form(), nil), http.StatusOK, "Connected")
	for err, status := range map[error]int{connect.ErrWrongBrowser: 403, connect.ErrWrongUser: 403, connect.ErrExpired: 410, connect.ErrUnknown: 404} {
		h.resultErr = err
		require.Equal(t, status, h.post(t, "/connect/account", form(), nil).StatusCode, err)
	}
}
