package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// P1: one call needs a login: one model call before the wait, the tool once after it, two model calls in all.
func TestOneModelCallBeforeTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("Four tickets.")))
	r := w.api.start("assistant", "Which tickets are there?")
	link := w.waiting(r)
	require.Equal(t, 1, r.status().ModelCalls)
	require.Len(t, w.modelCalls(), 1)
	events := r.events()
	last := events[len(events)-1]
	require.Equal(t, asks(events), last.LongRunningToolIDs)

	w.login(link)
	s := w.finished(r)
	require.Equal(t, "Four tickets.", s.Answer)
	require.Equal(t, 2, s.ModelCalls)
	require.Len(t, w.modelCalls(), 2)
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
}

// P2: in a loop [A needs a login, B] nothing but A runs before the login, and the loop stays in its first round.
func TestLoopWaitsWithItsChild(t *testing.T) {
	t.Parallel()
	o := options{
		open: true,
		agents: map[string]string{
			"both/root_agent.yaml": "agent_class: LoopAgent\nname: both\nmax_iterations: 2\nsub_agents:\n  - config_path: a.yaml\n  - config_path: b.yaml\n",
			"both/a.yaml":          assistant(""),
			"both/b.yaml":          "name: other\nmodel: ${var:MODEL}\ninstruction: Comment.\n",
		},
		script: "agents:\n  - agent: assistant\n    steps:\n" + indent(call("list_tickets")+text("listed")+text("again"), "      ") +
			"  - agent: other\n    steps:\n" + indent(text("first round")+text("second round"), "      "),
	}
	w := newWorld(t, o)
	r := w.api.start("both", "Go.")
	link := w.waiting(r)
	for _, e := range r.events() {
		require.NotEqual(t, "other", e.Author)
	}
	w.login(link)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, 5, s.ModelCalls)
	require.Equal(t, "second round", s.Answer)
}

// P9: two calls of one turn that need one slot: one request, one exchange, both run.
func TestParallelCallsShareOneLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets", "whoami")+text("done")))
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.Len(t, asks(r.events()), 1)
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Len(t, w.mcp.Calls("whoami"), 1)
}

// P8: a call that needs no login runs beside one that waits; its result is visible at once, and it never runs again.
func TestFreeCallRunsBesideTheWaitingOne(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	o := single(call("note {text: hello}", "list_tickets") + text("done"))
	o.agents["assistant/root_agent.yaml"] += "  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " + free.url + "\n"
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	require.Len(t, responses(r.events(), "note"), 1)
	require.Empty(t, responses(r.events(), "list_tickets"))
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	w.login(link)
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.EqualValues(t, 1, free.calls.Load())
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Len(t, w.modelCalls(), 2)
}

// P17: a person who has logged in is not asked again, in the same session or another.
func TestAskedOncePerUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("first")+call("list_tickets")+text("second")))
	r := w.api.startAs("user", "assistant", map[string]string{"task": "Go.", "mode": "chat"})
	w.login(w.waiting(r))
	w.idle(r, "first")
	w.api.startAs("user", "assistant", map[string]string{"task": "Again.", "mode": "chat", "session": r.id})
	w.eventually("second message is not answered", func() bool { return len(responses(r.events(), "list_tickets")) == 2 })
	require.Equal(t, "done", w.finished(w.api.start("assistant", "In another session.")).InvocationStatus)
	require.Len(t, asks(r.events()), 1)
	require.Equal(t, 1, w.provider.Counts().Approvals)
}

// P23: another user's login is no answer.
func TestUsersDoNotShareLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("whoami")+text("{{response.whoami.user}}")))
	a := w.api.startAs("ann", "assistant", map[string]string{"task": "Who am I?"})
	w.login(w.waiting(a))
	require.Contains(t, w.finished(a).Answer, "alice")
	b := w.api.startAs("ben", "assistant", map[string]string{"task": "Who am I?"})
	page := w.loginAs(w.waiting(b), "bob")
	require.Contains(t, page.Title, "Connected")
	require.Contains(t, w.finished(b).Answer, "bob")
	for _, c := range w.mcp.Calls("whoami") {
		require.NotEmpty(t, c.User)
	}
	require.Equal(t, 2, w.provider.Counts().Approvals)
}

// P18, P19: an expired token is refreshed before use, and a rotated refresh token is kept, across a restart.
func TestRefreshAcrossRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	w.finished(r)
	for range 3 {
		w.provider.RevokeAccessTokens()
		require.NoError(t, w.Restart(t.Context(), stack.Worker))
		require.Equal(t, "done", w.finished(w.api.start("assistant", "Go on.")).InvocationStatus)
	}
	require.Equal(t, 1, w.provider.Counts().Approvals)
	require.Equal(t, 3, w.provider.Counts().TokenOK["refresh_token"])
}

// T13: a grant that dies while it is needed is asked for anew, with a new request.
func TestRevokedGrantIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	first := w.api.start("assistant", "Go.")
	w.login(w.waiting(first))
	w.finished(first)
	w.provider.RevokeAll()
	second := w.api.start("assistant", "Go on.")
	link := w.waiting(second)
	require.NotEqual(t, asks(first.events()), asks(second.events()))
	w.login(link)
	require.Equal(t, "done", w.finished(second).InvocationStatus)
}
