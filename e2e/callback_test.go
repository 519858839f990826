package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// toCallback logs in as far as the provider's redirect to us, which is not followed: the browser and the address that
// it would have opened.
func (w *world) toCallback(link string) (*demo.Browser, string) {
	w.t.Helper()
	b := demo.NewBrowser()
	b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.Path, "/oauth/callback/") }
	page, err := b.Login(w.t.Context(), link, "alice", "alice-password")
	require.NoError(w.t, err)
	require.True(w.t, strings.HasPrefix(page.URL.Path, "/oauth/callback/"), page.URL.Path)
	b.StopAt = nil
	return b, page.URL.String()
}

func (w *world) visit(b *demo.Browser, address string) *demo.Page {
	w.t.Helper()
	page, err := b.Open(w.t.Context(), address)
	require.NoError(w.t, err)
	return page
}

func with(t *testing.T, address string, change func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}

// T17, M18, M19: forged callbacks change nothing, five real ones at once are one login, and a replay a moment later shows
// the outcome.
func TestForgedAndRepeatedCallbacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	browser, address := w.toCallback(link)
	for name, forged := range map[string]struct {
		browser *demo.Browser
		address string
		status  int
	}{
		"unknown state":           {browser, with(t, address, func(q url.Values) { q.Set("state", "made-up") }), http.StatusBadRequest},
		"no state":                {browser, with(t, address, func(q url.Values) { q.Del("state") }), http.StatusBadRequest},
		"our public correlator":   {browser, with(t, address, func(q url.Values) { q.Set("state", correlator(t, link)) }), http.StatusBadRequest},
		"another browser":         {demo.NewBrowser(), with(t, address, func(q url.Values) { q.Set("code", "attackers-own") }), http.StatusForbidden},
		"another browser, denial": {demo.NewBrowser(), with(t, address, func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }), http.StatusForbidden},
	} {
		page := w.visit(forged.browser, forged.address)
		require.Equal(t, forged.status, page.Status, name)
		require.NotContains(t, page.Title, "Connected", name)
		require.Zero(t, w.provider.Counts().Token["authorization_code"], name)
		require.Equal(t, "waiting_credential", r.status().State, name)
	}
	var group sync.WaitGroup
	pages := make([]*demo.Page, 5)
	for i := range pages {
		group.Go(func() { pages[i], _ = browser.Open(t.Context(), address) })
	}
	group.Wait()
	for _, page := range pages {
		require.NotNil(t, page)
		require.Contains(t, strings.ToLower(page.Title), "connected")
	}
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
	require.Contains(t, strings.ToLower(w.visit(browser, address).Title), "connected")
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
}

func correlator(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	return u.Query().Get("state")
}

// M17: two tabs: each flow has its own verifier, and the run goes on once.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	_, abandoned := w.toCallback(link)
	second, address := w.toCallback(link)
	require.NotEqual(t, abandoned, address)
	require.Contains(t, w.visit(second, address).Title, "Connected")
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
}

// P30, M22: a denial reaches the model as the tool's error, and the run ends normally; a late code changes nothing.
func TestDenialReachesTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("I was not allowed to.")))
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	late, address := w.toCallback(link)
	page, err := demo.NewBrowser().Deny(t.Context(), link, "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, "Declined", page.Title)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.True(t, s.Denied)
	require.Equal(t, "I was not allowed to.", s.Answer)
	answers := responses(r.events(), "list_tickets")
	require.Len(t, answers, 1)
	require.Contains(t, answers[0].Response["error"], "did not allow")
	require.NotContains(t, w.visit(late, address).Title, "Connected")
	require.Zero(t, w.provider.Counts().Token["authorization_code"])
	require.Empty(t, w.mcp.Calls("list_tickets"))
}

// A toolset whose login is denied is left out: the job goes on without it, says so and ends normally.
func TestJobWithoutItsTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, example(t))
	r := w.api.start("planner", "Plan the next release.")
	_, err := demo.NewBrowser().Deny(t.Context(), w.waiting(r), "alice", "alice-password")
	require.NoError(t, err)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.True(t, s.Denied)
	require.Contains(t, s.Answer, "not allowed")
	require.Len(t, asks(r.events()), 1, "the next round does not ask again")
	require.Empty(t, w.mcp.Calls(""))
}

// A callback after the run was cancelled exchanges nothing and says so.
func TestCallbackAfterCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	browser, address := w.toCallback(w.waiting(r))
	require.Equal(t, http.StatusAccepted, w.api.call("POST", r.path("/cancel"), nil, nil))
	require.Equal(t, "cancelled", w.finished(r).InvocationStatus)
	w.checkAnswers(r.events(), "cancelled")
	page := w.visit(browser, address)
	require.NotContains(t, page.Title, "Connected")
	require.GreaterOrEqual(t, page.Status, 400)
	require.Zero(t, w.provider.Counts().Token["authorization_code"])
}

// A request that expired tells the model, and its link and callback say so.
func TestDeadline(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("Nobody came."))
	o.agents["assistant/root_agent.yaml"] = assistant("tarry: {credential_deadline: 2s}\n")
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	browser, address := w.toCallback(link)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.True(t, s.Denied)
	require.Equal(t, "Nobody came.", s.Answer)
	require.Contains(t, responses(r.events(), "list_tickets")[0].Response["error"], "deadline")
	require.Equal(t, "Request expired", w.visit(demo.NewBrowser(), link).Title)
	require.NotContains(t, w.visit(browser, address).Title, "Connected")
	require.Zero(t, w.provider.Counts().Token["authorization_code"])
}

// T15, I4: the callback lands while neither worker nor Temporal runs; the page does not wait for them.
func TestCallbackWhileNothingElseRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	require.NoError(t, w.Kill(stack.Worker, stack.Temporal))
	require.Contains(t, w.login(link).Title, "Connected")
	require.NoError(t, w.Start(t.Context(), stack.Temporal, stack.Worker))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
}
