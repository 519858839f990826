//go:build interop

package interop_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// Resource indicators: each server's token names that server as its only audience, and another server refuses it.
func TestTokensAreForOneServer(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	everything := startEverything(t, streamable, "0")
	one, two := protect(t, as, everything, "/mcp"), protect(t, as, everything, "/mcp")
	w := newWorld(t, single(calls(echo, "get-sum {a: 2, b: 3}")+says("done"),
		toolset{url: one.url(), tools: []string{"echo"}}, toolset{url: two.url(), tools: []string{"get-sum"}}))
	r := w.start("agent", "Go.")
	first := r.waiting()
	w.login(first)
	w.login(r.waiting(first))
	r.finished()
	require.Equal(t, 2, r.logins())

	_, answers := r.functions("get-sum")
	require.Len(t, answers, 1)
	require.Contains(t, text(answers[0]), "The sum of 2 and 3 is 5.")
	for _, p := range []*protection{one, two} {
		require.Len(t, p.calls(""), 1)
		require.Equal(t, p.url(), p.calls("")[0].Claims.Audience)
		require.Equal(t, scopeTools, p.calls("")[0].Claims.Scope)
	}
	seen := as.seen()
	require.Len(t, seen.Registered, 1, "one client is enough for one provider")
	require.Len(t, seen.Authorizations, 2)

	step(t, "brings the token of one server to the other")
	require.Equal(t, http.StatusUnauthorized, knock(t, two.url(), one.latestToken()))
	require.NotEqual(t, http.StatusUnauthorized, knock(t, two.url(), two.latestToken()))
	forged := two.latestToken()
	require.Equal(t, http.StatusUnauthorized, knock(t, two.url(), forged[:strings.LastIndex(forged, ".")+1]+"AAAA"))
}

// Step-up: a tool that needs more than was granted asks for all of it, the provider gives one token with the union, and
// the call is made again. The provider is one of several on its host, told apart by the path of their issuers.
func TestStepUp(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{base: "/realms/one"})
	planner := plannerServer(t, as)
	w := newWorld(t, single(calls("list_tickets {status: open}")+calls("create_plan {title: Next, tickets: [REL-101]}")+
		calls("publish_plan {plan: '{{response.create_plan.id}}'}")+says("done"),
		toolset{url: planner.URL(), tools: []string{"list_tickets", "create_plan", "publish_plan"}}))
	r := w.start("agent", "Go.")
	link := r.waiting()
	w.login(link)
	w.login(r.waiting(link))
	r.finished()
	require.Equal(t, 2, r.logins())
	require.Len(t, planner.Calls("publish_plan"), 1)
	seen := as.seen()
	require.Len(t, seen.Registered, 1)
	require.Len(t, seen.Authorizations, 2)
	first, _ := seen.Authorizations[0]["scope"].(string)
	second, _ := seen.Authorizations[1]["scope"].(string)
	require.NotContains(t, first, demo.ScopePublish)
	for _, scope := range append(strings.Fields(first), demo.ScopePublish) {
		require.Contains(t, strings.Fields(second), scope)
	}
}

// knock sends a request with a token and returns the status.
func knock(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// text is the text of a tool's answer, wherever in it.
func text(f *function) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(f.Response)
	return b.String()
}
