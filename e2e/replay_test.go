package e2e_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/internal/stack"
	"tarry/wire"
)

// starter runs the command line against the world and returns its status and output.
func (w *world) starter(args ...string) (status int, out string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(binaries, "starter"), args...) //nolint:gosec // our own program
	cmd.Env = []string{"TEMPORAL_ADDRESS=" + w.Addr(stack.Temporal), "TARRY_SERVER=" + w.URL(), "HOME=" + w.dir}
	body, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err, string(body))
	}
	return cmd.ProcessState.ExitCode(), string(body)
}

// Before a deployment: the sessions that wait fit the code, whoever's they are, and one that was begun by other code is
// named with what differs (pitfall T9). The worker keeps nothing in memory, so that every step of a run is a replay, and
// what it wrote replays in another process (pitfall T6).
func TestReplayOfOpenRuns(t *testing.T) {
	t.Parallel()
	o := example(t)
	o.env = []string{"TARRY_STICKY_CACHE=0"}
	w := newWorld(t, o)
	first, second := w.api.start("planner", "Plan the next release."), w.api.startAs("bob", "planner", map[string]string{"task": "Plan."})
	link := w.waiting(first)
	w.waiting(second)
	var out string
	w.eventually("the open runs are not listed", func() bool {
		var status int
		status, out = w.starter("replay", "--all-open", "--app", "planner")
		require.Zero(t, status, out)
		return bytes.Contains([]byte(out), []byte("2 of 2 fit"))
	})
	require.Contains(t, out, w.workflowOf(first)+": fits, ")
	status, out := w.starter("replay", "--all-open", "--app", "plan")
	require.Zero(t, status, out)
	require.Equal(t, "no session is open\n", out)

	w.startOther(w.temporal())
	w.eventually("the changed run is not noticed", func() bool {
		status, out = w.starter("replay", "--all-open")
		return status != 0
	})
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "2 of 3 fit, 1 differ\n")
	require.Contains(t, out, "tarry/other/user/s1: differs: event 6: the run called tool mcp/list_tickets; the code would take the next message. No activity agrees before.")

	w.login(link)
	require.Equal(t, "done", w.finished(first).InvocationStatus)
	file := filepath.Join(w.dir, "export.json")
	status, out = w.starter("export", first.id, "-o", file)
	require.Zero(t, status, out)
	status, out = w.starter("replay", file, first.id)
	require.Zero(t, status, out)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(body), first.id)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(body, []byte("tool/mcp/list_tickets"), []byte("tool/mcp/drop_tickets")), 0o600)) //nolint:gosec // below the test's own folder
	status, out = w.starter("replay", file)
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "the run called tool mcp/drop_tickets; the code would call tool mcp/list_tickets")

	// A session that goes on in another run is exported with both.
	temporal := w.temporal()
	require.NoError(t, temporal.SignalWorkflow(t.Context(), w.workflowOf(second), "", wire.SignalContinueAsNew, nil))
	w.eventually("the run does not continue as new", func() bool { return w.chain(temporal, w.workflowOf(second)) == 2 })
	w.login(w.waiting(second))
	require.Equal(t, "done", w.finished(second).InvocationStatus)
	chain := filepath.Join(w.dir, "chain")
	require.NoError(t, os.Mkdir(chain, 0o700))
	status, out = w.starter("export", second.id, "--user", "bob", "--chain", "-o", filepath.Join(chain, "run.json"))
	require.Zero(t, status, out)
	status, out = w.starter("replay", chain)
	require.Zero(t, status, out)
	require.Contains(t, out, "2 of 2 fit\n")
	status, out = w.starter("export", second.id, "--user", "bob", "--run", "no-such-run")
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "has no run no-such-run")
}

// startOther starts a session with a worker whose code calls a tool before it takes a message.
func (w *world) startOther(c client.Client) {
	w.t.Helper()
	const queue = "other"
	other := worker.New(c, queue, worker.Options{})
	other.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ wire.SessionInput) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: patience, TaskQueue: "nobody"})
		return workflow.ExecuteActivity(ctx, wire.ToolActivity("mcp", "list_tickets"), wire.ToolInput{Call: "adk-1"}).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: wire.WorkflowSession})
	require.NoError(w.t, other.Start())
	w.t.Cleanup(other.Stop)
	in := wire.SessionInput{Plan: agent.Plan{App: "other", Root: agent.Node{Name: "root", Kind: agent.KindLLM}}, Mode: wire.ModeJob}
	_, err := c.SignalWithStartWorkflow(w.t.Context(), wire.WorkflowID("other", "user", "s1"), wire.SignalMessage, wire.Message{Inbox: "i1"},
		client.StartWorkflowOptions{TaskQueue: queue}, wire.WorkflowSession, in)
	require.NoError(w.t, err)
}
