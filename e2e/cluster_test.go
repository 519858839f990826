package e2e_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
	"tarry/replay"
)

// A namespace without our search attributes: runs work; `starter setup` registers what is missing, once.
func TestBareNamespace(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("ok"))
	o.temporal = []string{"--bare"}
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.NotContains(t, string(r.history()), "TarryStatus")

	require.Contains(t, w.setup(), "added TarryAgent, TarryApp, TarryStatus")
	require.Contains(t, w.setup(), "already")
	require.NoError(t, w.Restart(t.Context(), stack.Server)) // it asks once a minute otherwise
	again := w.api.start("assistant", "Go.")
	require.Equal(t, "done", w.finished(again).InvocationStatus)
	require.Contains(t, string(again.history()), "TarryStatus")
}

func (w *world) setup() string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(binaries, "starter"), "setup") //nolint:gosec // our own program
	cmd.Env = []string{"TEMPORAL_ADDRESS=" + w.Addr(stack.Temporal), "HOME=" + w.dir}
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, string(out))
	return string(out)
}

// A run that continues as new in the middle of its loop, again and again, gives the same session.
func TestContinueAsNewInsideALoop(t *testing.T) {
	t.Parallel()
	o := example(t)
	o.env = []string{"TARRY_CONTINUE_AFTER=30"}
	w := newWorld(t, o)
	r := w.api.start("planner", "Plan the next release.")
	w.login(w.waiting(r))
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Contains(t, s.Answer, "plan-2")
	require.Equal(t, 8, s.ModelCalls)
	require.Len(t, w.modelCalls(), 8)
	require.Len(t, w.mcp.Calls("create_plan"), 2)
	history := r.history()
	require.Contains(t, string(history), "continuedExecutionRunId")
	require.Equal(t, 1, strings.Count(string(history), `"continuedExecutionRunId"`))
	_, err := replay.Reader(t.Context(), bytes.NewReader(history))
	require.NoError(t, err)
	w.checkAnswers(r.events(), "continued")
}
