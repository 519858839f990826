//go:build interop

package interop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server of the old transport (HTTP with server-sent events, two endpoints) asks for the same login as any other, and
// one that is a process on standard input and output for none.
func TestOtherTransports(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, "sse", "0"), "/sse", "/message")
	o := single(calls(echo, "get-sum {a: 2, b: 3}")+calls("trigger-long-running-operation {duration: 2, steps: 4}")+says("done"),
		toolset{how: "sse_connection_params: {url: '" + p.url() + "'}", tools: []string{"echo", "trigger-long-running-operation"}},
		toolset{how: "stdio_server_params: {command: '" + node + "', args: ['" + packages +
			"/node_modules/@modelcontextprotocol/server-everything/dist/index.js', stdio]}", tools: []string{"get-sum"}})
	o.env = []string{"TARRY_ALLOW_STDIO=true"}
	w := newWorld(t, o)
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	r.finished()
	require.Equal(t, 1, r.logins())
	for tool, wants := range map[string]string{
		"echo": "Echo: hello", "get-sum": "The sum of 2 and 3 is 5.", "trigger-long-running-operation": "Long running operation completed",
	} {
		_, answers := r.functions(tool)
		require.Len(t, answers, 1)
		require.Contains(t, text(answers[0]), wants)
	}
	require.Len(t, p.calls(""), 2)
	require.Equal(t, p.url(), p.calls("")[0].Claims.Audience)
}
