package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// P13, I5: twenty sessions of a loop with two toolsets, one of which needs a login; the worker is restarted between listing
// and call. One login wakes all of them, none crashes, and none loses a tool.
func TestManySessionsOfALoop(t *testing.T) {
	t.Parallel()
	const sessions = 20
	free := newFreeServer(t)
	o := options{
		open: true,
		agents: map[string]string{
			"many/root_agent.yaml": "agent_class: LoopAgent\nname: many\nmax_iterations: 2\nsub_agents:\n  - config_path: a.yaml\n",
			"many/a.yaml": assistant("") + "  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " +
				free.url + "\n",
		},
		script: "agents:\n  - agent: assistant\n    steps:\n" +
			indent(call("note {text: hello}", "list_tickets")+text("first round")+call("list_tickets", "note {text: bye}")+text("second round"), "      "),
	}
	w := newWorld(t, o)
	var runs []runHandle
	for i := range sessions {
		runs = append(runs, w.api.start("many", fmt.Sprintf("Go, number %d.", i)))
	}
	var link string
	for _, r := range runs {
		link = w.waiting(r)
	}
	require.NoError(t, w.Restart(t.Context(), stack.Worker))
	w.login(link)
	for i, r := range runs {
		s := w.finished(r)
		require.Equal(t, "done", s.InvocationStatus, "session %d", i)
		require.Equal(t, "second round", s.Answer, "session %d", i)
		w.checkAnswers(r.events(), fmt.Sprint("session ", i))
		require.Len(t, responses(r.events(), "note"), 2)
		require.Len(t, responses(r.events(), "list_tickets"), 2)
	}
	require.EqualValues(t, 2*sessions, free.calls.Load())
	require.Equal(t, 1, w.provider.Counts().Approvals)
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])
}
