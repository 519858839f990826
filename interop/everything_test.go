//go:build interop

package interop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// The tools of the reference MCP server, in a loop of agents: several at once, one that sends progress for longer than a
// silent call may take, errors of a tool, content of several kinds.
func TestToolsOfTheReferenceServer(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	o := single(calls(echo, "get-sum {a: 40, b: 2}", "get-structured-content {location: Chicago}", "get-tiny-image {}")+
		calls(long)+
		calls("get-sum {a: none}")+says("drafted")+says("done"),
		toolset{url: p.url(), tools: []string{"echo", "get-sum", "get-structured-content", "get-tiny-image", "trigger-long-running-operation"}})
	o.agents["agent/worker.yaml"] = o.agents["agent/root_agent.yaml"]
	o.agents["agent/root_agent.yaml"] = "agent_class: LoopAgent\nname: looping\nmax_iterations: 3\nsub_agents:\n  - config_path: worker.yaml\n  - config_path: reviewer.yaml\n"
	o.agents["agent/reviewer.yaml"] = "name: reviewer\nmodel: ${var:MODEL}\ninstruction: Review.\ntools:\n  - name: exit_loop\n"
	o.script += "  - agent: reviewer\n    steps:\n" + says("Once more.") + calls("exit_loop {}")
	w := newWorld(t, o)
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	r.finished()
	require.Equal(t, 1, r.logins())

	for tool, wants := range map[string]string{
		"echo": "Echo: hello", "get-sum": "The sum of 40 and 2 is 42.", "get-structured-content": "temperature",
		"get-tiny-image": "The image above is the MCP logo.", "trigger-long-running-operation": "Long running operation completed. Duration: 6 seconds, Steps: 6.",
	} {
		_, answers := r.functions(tool)
		require.NotEmpty(t, answers, tool)
		require.Contains(t, text(answers[0]), wants)
	}
	_, answers := r.functions("get-sum")
	require.Len(t, answers, 2)
	require.Contains(t, text(answers[1]), "number", "the model is told what was wrong")
	require.Len(t, p.calls("trigger-long-running-operation"), 1)
}

// Error -32042: the run waits for a person with our page, survives the death of the processes, and makes the call again.
func TestURLElicitation(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	w := newWorld(t, single(calls("trigger-url-elicitation {url: 'https://pay.example/confirm', errorPath: true}")+says("done"),
		toolset{url: p.url(), tools: []string{"trigger-url-elicitation"}}))
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	link := r.asked()
	page, err := demo.NewBrowser().Open(t.Context(), link)
	require.NoError(t, err)
	require.Contains(t, page.Text, "modelcontextprotocol.io")
	require.Contains(t, page.Text, "Open this link to satisfy the prerequisite")

	step(t, "kills the processes while the run waits for the person")
	require.NoError(t, w.Kill(stack.Worker, stack.Server))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	require.Equal(t, link, r.asked())
	w.walk(link, demo.NewBrowser().Login)
	// The MCP session died with the worker, and with it what the server knew of the person's visit: it asks again.
	w.walk(r.asked(link), demo.NewBrowser().Login)
	r.finished()
	require.Len(t, p.calls(""), 3)
	_, answers := r.functions("trigger-url-elicitation")
	require.Len(t, answers, 1)
	// Now it wants another visit and waits for it within the call, which nobody can be waited for in.
	require.Contains(t, text(answers[0]), "User cancelled the URL elicitation")
}

// A form whose fields have defaults, but for one that is needed: it is declined at once, for nobody knows the name.
func TestFormElicitation(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	w := newWorld(t, single(calls("trigger-elicitation-request {}")+says("done"),
		toolset{url: p.url(), tools: []string{"trigger-elicitation-request"}, extra: "      tarry: {accept_defaults: true}\n"}))
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	r.finished()
	_, answers := r.functions("trigger-elicitation-request")
	require.Len(t, answers, 1)
	require.Contains(t, text(answers[0]), "User declined")
}
