package connect_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/server/connect"
)

func asksKey(t *testing.T, k auth.Key) *harness {
	t.Helper()
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.page.ProviderHost, h.page.Scopes, h.page.Key, h.page.Shown = "", nil, &connect.Key{Key: k}, "adk-r2"
	h.result = connect.Result{Outcome: auth.StatusGranted, RequestID: "adk-r1", App: "planner", Correlator: "corr", Key: true, ProviderHost: "mcp.example"}
	return h
}

// The page says who asks, where the key goes and how, and has a control that neither browser nor page fills in.
func TestKeyPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   auth.Key
		shows []string
	}{
		"header": {auth.Key{In: "header", Name: "X-<b>Key"}, []string{"your API key for", "<dd>header <bdi><code>X-&lt;b&gt;Key</code></bdi></dd>"}},
		"query":  {auth.Key{In: "query", Name: "k"}, []string{"your API key for", "<dd>query <bdi><code>k</code></bdi></dd>"}},
		"basic":  {auth.Key{Scheme: "basic"}, []string{"your password for", "HTTP basic", `name="username" value="" autocomplete="off"`}},
		"bearer": {auth.Key{Scheme: "bearer"}, []string{"your access token for", "bearer token"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asksKey(t, c.key)
			a := h.get(t, "/connect?request=adk-r1&key=SECRET")
			requirePage(t, a, http.StatusOK, "A key for mcp.example")
			for _, want := range append(c.shows, "ada", "planner", "booker", "book", "calendar", "mcp.example", `type="password" name="key" value="" autocomplete="off"`, `value="decline" formnovalidate`) {
				require.Contains(t, a.body, want)
			}
			require.NotContains(t, a.body, "did not accept")
			h.page.Key.Again = true
			require.Contains(t, h.get(t, "/connect?request=adk-r1").body, "did not accept")
			require.Empty(t, h.answers)
			h.requireSilentLogs(t)
		})
	}
}

func TestKeyForm(t *testing.T) {
	t.Parallel()
	h := asksKey(t, auth.Key{Scheme: "basic"})
	page := h.get(t, "/connect?request=adk-r1&redirect_uri="+url.QueryEscape(returnURL))
	form := func(action string) url.Values {
		return url.Values{"request": {page.field("request")}, "csrf": {page.field("csrf")}, "shown": {page.field("shown")}, "action": {action}, "username": {"SECRETNAME"}, "key": {"SECRETWORD"}}
	}
	a := h.post(t, "/connect/answer", form("accept"), nil)
	requirePage(t, a, http.StatusOK, "Saved")
	require.Contains(t, a.body, "mcp.example")
	got := h.answers[0]
	require.False(t, got.Decline)
	require.Equal(t, "adk-r2", got.Shown)
	require.Equal(t, []string{"SECRETWORD"}, got.Values(connect.KeyControl))
	require.Equal(t, []string{"SECRETNAME"}, got.Values(connect.UsernameControl))

	back := form("accept")
	back.Set("redirect_uri", returnURL)
	a = h.post(t, "/connect/answer", back, nil)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	require.NotContains(t, a.Header.Get("Location"), "SECRET")

	// What does not do is not shown again.
	h.resultErr = &connect.FormError{Text: "That does not do: the key is missing."}
	a = h.post(t, "/connect/answer", form("accept"), nil)
	requirePage(t, a, http.StatusUnprocessableEntity, "Check your answer: A key for mcp.example")
	require.Contains(t, a.body, "That does not do")

	h.resultErr, h.result.Outcome = nil, auth.StatusDenied
	a = h.post(t, "/connect/answer", form("decline"), nil)
	requirePage(t, a, http.StatusOK, "Declined")
	require.True(t, h.answers[len(h.answers)-1].Decline)

	before := len(h.answers)
	large := form("accept")
	large.Set("key", string(make([]byte, 300<<10)))
	for name, values := range map[string]url.Values{
		"no token":  {"request": {"adk-r1"}, "action": {"accept"}, "key": {"SECRET"}},
		"no action": {"request": {"adk-r1"}, "csrf": {page.field("csrf")}, "key": {"SECRET"}},
		"too large": large,
	} {
		require.Equal(t, http.StatusForbidden, h.post(t, "/connect/answer", values, nil).StatusCode, name)
	}
	require.Len(t, h.answers, before)
	h.requireSilentLogs(t)
}
