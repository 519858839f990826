//go:build interop

package interop_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLife is less than the operation `long` takes, so that the next call finds its token expired.
const shortLife = 5 * time.Second

// Rotation with reuse detection: every refresh brings the latest refresh token and gets another, also when several calls
// find their token expired at once; the grant lives. When a thief uses an old one the provider ends the grant, and the run
// asks again and goes on.
func TestRotationWithReuseDetection(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{life: shortLife})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	sum := "get-sum {a: 1, b: 1}"
	w := newWorld(t, single(calls(long)+calls(sum, sum, sum, sum, sum, sum)+calls(long)+calls(echo)+calls(long)+calls(sum)+says("done"),
		toolset{url: p.url(), tools: []string{"echo", "get-sum", "trigger-long-running-operation"}}))
	gate := p.hold("echo")
	r := w.start("agent", "Go.")
	link := r.waiting()
	w.login(link)
	step(t, "calls tools for longer than tokens live")
	wait(t, gate.Arrived(), "the call of echo does not come")

	seen := as.seen()
	require.GreaterOrEqual(t, seen.granted("refresh_token"), 2)
	require.Empty(t, seen.Errors)
	require.Empty(t, seen.Revoked)
	used := map[string]bool{}
	for i, form := range seen.Tokens {
		require.NotEmpty(t, form["refreshed"])
		require.Equal(t, p.url(), form["resource"])
		if i > 0 {
			require.Equal(t, "refresh_token", form["grant_type"])
			require.Equal(t, seen.Tokens[i-1]["refreshed"], form["refresh_token"], "not the latest refresh token")
		}
		require.False(t, used[form["refreshed"]], "not rotated")
		used[form["refreshed"]] = true
	}
	require.Equal(t, 1, r.logins())

	step(t, "replays the first refresh token")
	require.Equal(t, http.StatusBadRequest, replay(t, as, seen.Tokens[0]["refreshed"], p.url()))
	require.Len(t, as.seen().Revoked, 1)
	gate.Open()
	w.login(r.waiting(link))
	s := r.finished()
	require.Equal(t, "done", s.Answer)
	require.Equal(t, 2, r.logins())
	require.Len(t, p.calls(""), 11, "each call was made once")
}

// replay uses a refresh token as a thief would who has the client's secret too.
func replay(t *testing.T, as *authorizationServer, token, resource string) int {
	t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "resource": {resource}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, as.issuer+"/token", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	client := as.seen().Registered[0]
	req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// A grant that is withdrawn at the provider between two calls of a run: the server refuses the token, the provider the
// refresh; the run asks again, and the same run ends well.
func TestGrantWithdrawnBetweenCalls(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	w := newWorld(t, single(calls(echo)+calls("get-sum {a: 1, b: 1}")+says("done"),
		toolset{url: p.url(), tools: []string{"echo", "get-sum"}}))
	gate := p.hold("echo")
	r := w.start("agent", "Go.")
	link := r.waiting()
	w.login(link)
	wait(t, gate.Arrived(), "the call of echo does not come")
	step(t, "withdraws the grant")
	as.withdraw()
	p.refuse()
	gate.Open()

	again := r.waiting(link)
	seen := as.seen()
	require.Len(t, seen.Errors, 1)
	require.Equal(t, "refresh_token", seen.Errors[0].At)
	require.Equal(t, "invalid_grant", seen.Errors[0].Error)
	w.login(again)
	s := r.finished()
	require.Equal(t, "done", s.Answer)
	require.Equal(t, 2, r.logins())
	require.Len(t, p.calls("echo"), 1, "what was answered is not called again")
	require.Len(t, as.seen().Registered, 1)
}

// A provider without refresh tokens: nothing asks for them, and when the access token has expired the run asks again.
func TestNoRefreshTokens(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{life: shortLife, noRefresh: true})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	w := newWorld(t, single(calls(long)+calls(echo)+says("done"), toolset{url: p.url(), tools: []string{"echo", "trigger-long-running-operation"}}))
	r := w.start("agent", "Go.")
	link := r.waiting()
	w.login(link)
	w.login(r.waiting(link))
	r.finished()
	require.Equal(t, 2, r.logins())
	require.Len(t, p.calls(""), 2)
	seen := as.seen()
	require.Empty(t, seen.Errors)
	require.Zero(t, seen.granted("refresh_token"))
	for _, asked := range seen.Authorizations {
		require.Equal(t, scopeTools, asked["scope"])
	}
}

// A provider that has forgotten its clients: a refresh finds it out, and the next login registers a client anew.
func TestProviderForgetsItsClients(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	w := newWorld(t, single(calls(echo)+calls("get-sum {a: 1, b: 1}")+says("done"),
		toolset{url: p.url(), tools: []string{"echo", "get-sum"}}))
	gate := p.hold("echo")
	r := w.start("agent", "Go.")
	link := r.waiting()
	w.login(link)
	wait(t, gate.Arrived(), "the call of echo does not come")
	step(t, "forgets the client while the run is between two calls")
	as.restart()
	p.refuse()
	gate.Open()
	again := r.waiting(link)
	require.Len(t, as.seen().Errors, 1)
	require.Equal(t, "invalid_client", as.seen().Errors[0].Error)
	w.login(again)
	r.finished()
	require.Len(t, as.seen().Registered, 1)
	require.Equal(t, 2, r.logins())
}

// An MCP server that starts anew between two calls has forgotten its sessions, and says so with 400 instead of 404: the
// call that finds out is made again in a new session, with the same token.
func TestServerRestartsBetweenCalls(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	everything := startEverything(t, streamable, "0")
	p := protect(t, as, everything, "/mcp")
	w := newWorld(t, single(calls(echo)+calls("get-sum {a: 1, b: 1}")+says("done"),
		toolset{url: p.url(), tools: []string{"echo", "get-sum"}}))
	gate := p.hold("get-sum")
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	wait(t, gate.Arrived(), "the call of get-sum does not come")
	step(t, "restarts the MCP server")
	everything.stop()
	startEverything(t, streamable, everything.port())
	gate.Open()
	r.finished()
	require.Equal(t, 1, r.logins())
	_, answers := r.functions("get-sum")
	require.Len(t, answers, 1)
	require.Contains(t, text(answers[0]), "The sum of 1 and 1 is 2.")
	require.Equal(t, 1, as.seen().granted("authorization_code"))
}

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.Fail(t, what)
	}
}
