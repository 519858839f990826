package e2e_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"tarry/internal/stack"
)

// T3, T4: results of 1.9, 2.1 and 3 MB are answers that the model is told of, each of one attempt. Nothing of them is in the
// history, in which no task fails.
func TestHugeResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("big {kb: 1900}")+call("big {kb: 2100}")+call("big {kb: 3000}")+text("done")))
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "done", s.Answer)
	answers := responses(r.events(), "big")
	require.Len(t, answers, 3)
	for _, a := range answers {
		require.True(t, a.Response["truncated"] != nil || a.Response["error"] != nil)
	}
	require.Len(t, w.mcp.Calls("big"), 3)
	h, err := temporal.HistoryFromJSON(bytes.NewReader(r.history()), temporal.HistoryJSONOptions{})
	require.NoError(t, err)
	for _, e := range h.GetEvents() {
		require.NotEqual(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, e.GetEventType())
		require.Less(t, proto.Size(e), 64<<10)
	}
}

// T33: a worker that is told to stop lets a tool end that takes seconds; the result is kept and the tool is not called again.
func TestStoppingWorkerLetsToolsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("slow")+text("done")))
	gate := w.mcp.HoldSlow()
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	<-gate.Arrived()
	begun := time.Now()
	time.AfterFunc(2*time.Second, gate.Open)
	require.NoError(t, w.Stop(stack.Worker))
	took := time.Since(begun)
	t.Logf("the worker stopped after %s", took)
	require.Greater(t, took, 2*time.Second, "it waits for the tool")
	require.Len(t, responses(r.events(), "slow"), 1, "the result is stored before the worker ends")
	require.Nil(t, responses(r.events(), "slow")[0].Response["error"])
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	require.Equal(t, "done", w.finished(r).Answer)
	require.Len(t, w.mcp.Calls("slow"), 1)
}
