package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// M36: a server that needs a login before it lists its tools does not hold up those of others, where the definition says
// so: the model connects when it needs them.
func TestLazyToolsetHoldsNothingUp(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	o := single(call("note {text: hello}") + call("mcp_connect") + call("list_tickets") + text("{{response.mcp_connect.tools}}"))
	o.open = false
	o.agents["assistant/root_agent.yaml"] += "      tarry: {lazy: true}\n" +
		"  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " + free.url + "\n"
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	require.EqualValues(t, 1, free.calls.Load(), "the other server's tool has run")
	require.Equal(t, "mcp", r.status().WaitingFor[0].Toolset)
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	w.login(link)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Contains(t, s.Answer, "list_tickets")
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Len(t, asks(r.events()), 1)

	// Who has logged in gets the tools at once.
	again := w.api.start("assistant", "Go.")
	w.eventually("the run does not end", func() bool { return !strings.HasPrefix(again.status().State, "running") })
	require.Empty(t, asks(again.events()))
}
