package activities_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/tarrytest"
	"tarry/wire"
)

// Who has as much to answer as may wait is asked nothing more: the call gets an error that says so, and may be made again.
func TestTooManyAsked(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")[0], agent.Tool{MCP: &agent.MCPToolset{Name: "m", Transport: agent.TransportStreamableHTTP, URL: "https://mcp.example/mcp"}}), counting(t, &runs))
	w.toolsets["m"] = tarrytest.NewToolset()
	w.store.LimitRequests(1)
	in := listing(w)
	calls := w.calls("t", "t", "t").Calls
	first := w.tool(calls[0], "t1", "")
	require.True(t, first.Confirmation)

	second := w.tool(calls[1], "t2", "")
	require.Empty(t, second.Request)
	require.False(t, second.Denied, "nobody has said no")
	require.Contains(t, w.response(second.Event)["error"], "Nobody was asked: too many questions")
	require.Contains(t, w.log.String(), "too many open requests")

	listed := must[wire.ListResult](w, wire.ActivityListTools, "l1", in)
	require.True(t, listed.Failed)
	text, _ := w.system("m1", in.Heads, listed.List)
	require.Contains(t, text, "The tools of m are not available: they need a login. Nobody was asked")

	w.confirm(first.Request, true, "")
	done := w.tool(calls[0], "t3", first.Request)
	require.Equal(t, map[string]any{"run": 1.0}, w.response(done.Event))
	again := w.tool(calls[2], "t4", "")
	require.True(t, again.Confirmation, "there is room again")
}
