package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry/internal/stack"
	"tarry/wire"
)

// beside is an app "both": a ParallelAgent of one child that needs a login and one that does not, and a reporter after it.
func beside() options {
	return options{
		open: true,
		agents: map[string]string{
			"both/root_agent.yaml": "agent_class: SequentialAgent\nname: both\nsub_agents:\n  - config_path: side.yaml\n  - config_path: reporter.yaml\n",
			"both/side.yaml":       "agent_class: ParallelAgent\nname: side\nsub_agents:\n  - config_path: a.yaml\n  - config_path: b.yaml\n",
			"both/a.yaml":          assistant(""),
			"both/b.yaml":          "name: other\nmodel: ${var:MODEL}\ninstruction: Comment.\n",
			"both/reporter.yaml":   "name: reporter\nmodel: ${var:MODEL}\ninstruction: Report.\n",
		},
		script: "agents:\n  - agent: assistant\n    steps:\n" + indent(call("list_tickets")+text("listed"), "      ") +
			"  - agent: other\n    steps:\n" + indent(text("beside"), "      ") +
			"  - agent: reporter\n    steps:\n" + indent(text("reported"), "      "),
	}
}

// A child of a ParallelAgent that waits holds up neither its sibling nor the rest of the world: everything may be killed, and
// the run may continue as new, twice. Siblings do not see each other; who comes after sees both.
func TestParallelWaitsThroughKillsAndNewRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside())
	r := w.api.start("both", "Go.")
	link := w.waiting(r)
	require.Len(t, w.modelCalls(), 2)
	branches := map[string]string{}
	for _, e := range r.events() {
		branches[e.Author] = e.Branch
	}
	require.Equal(t, map[string]string{"user": "", "assistant": "side.assistant", "other": "side.other"}, branches)
	temporal, workflow := w.temporal(), w.workflowOf(r)
	for runs := 2; runs < 4; runs++ {
		require.NoError(t, temporal.SignalWorkflow(t.Context(), workflow, "", wire.SignalContinueAsNew, nil))
		w.eventually("the run does not continue as new", func() bool { return w.chain(temporal, workflow) == runs })
	}
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	require.Equal(t, link, w.waiting(r))
	w.login(link)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "reported", s.Answer)
	require.Len(t, w.modelCalls(), 4)
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Len(t, asks(r.events()), 1)
}

// temporal connects to the dev server until the test ends.
func (w *world) temporal() client.Client {
	w.t.Helper()
	c, err := client.Dial(client.Options{HostPort: w.Addr(stack.Temporal)})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// chain counts the runs of a workflow so far.
func (w *world) chain(c client.Client, workflow string) int {
	w.t.Helper()
	answer, err := c.QueryWorkflow(w.t.Context(), workflow, "", wire.QueryStatus)
	require.NoError(w.t, err)
	var s wire.Status
	require.NoError(w.t, answer.Get(&s))
	return s.Runs
}

func (w *world) workflowOf(r runHandle) string {
	w.t.Helper()
	ids := w.query(`SELECT workflow_id FROM sessions WHERE id = ?`, r.id)
	require.Len(w.t, ids, 1)
	return ids[0]
}
