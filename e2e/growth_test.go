package e2e_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"tarry/internal/stack"
	"tarry/wire"
)

// I2: a run of 200 turns with results of 4 KB costs the same history per turn at turn 200 as at turn 20, and within the
// bounds of the design.
func TestHistoryDoesNotGrowWithTheConversation(t *testing.T) {
	t.Parallel()
	const turns = 200
	w := newWorld(t, single(strings.Repeat(call("big {kb: 4}"), turns)+text("done")))
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, turns+1, s.ModelCalls)

	h, err := temporal.HistoryFromJSON(bytes.NewReader(r.history()), temporal.HistoryJSONOptions{})
	require.NoError(t, err)
	costs := perTurn(h)
	require.Len(t, costs, turns)
	early, late := average(costs[10:30]), average(costs[turns-20:])
	t.Logf("events per turn %.2f and %.2f, bytes per turn %.0f and %.0f", early.events, late.events, early.bytes, late.bytes)
	require.InEpsilon(t, early.bytes, late.bytes, 0.05)
	require.InEpsilon(t, early.events, late.events, 0.05)
	require.LessOrEqual(t, late.events, 12.0)
	require.LessOrEqual(t, late.bytes, 1638.0)
}

type cost struct{ events, bytes float64 }

// perTurn cuts a history at the model calls; a turn is what lies between two.
func perTurn(h *historypb.History) (out []cost) {
	at := -1
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == wire.ActivityCallModel {
			out = append(out, cost{})
			at++
		}
		if at >= 0 {
			out[at].events++
			out[at].bytes += float64(proto.Size(e))
		}
	}
	return out[:len(out)-1] // the last one is the end of the run
}

func average(costs []cost) (sum cost) {
	for _, c := range costs {
		sum.events += c.events / float64(len(costs))
		sum.bytes += c.bytes / float64(len(costs))
	}
	return sum
}

// A prompt that is edited while a run waits does not touch that run; a new session has it.
func TestEditedPromptDoesNotTouchARun(t *testing.T) {
	t.Parallel()
	o := single("")
	o.script = `agents:
  - agent: assistant
    steps:
      - {when: {instruction: "Be old", turn: 1}, calls: [{name: list_tickets, args: {}}]}
      - {when: {instruction: "Be old"}, text: "old prompt"}
      - {when: {instruction: "Be new"}, text: "new prompt"}
`
	o.agents["assistant/root_agent.yaml"] = strings.Replace(assistant(""), "Help with tickets.", "Be old.", 1)
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	w.write("agents/assistant/root_agent.yaml", strings.Replace(assistant(""), "Help with tickets.", "Be new.", 1))
	require.NoError(t, w.Restart(t.Context(), stack.Worker))
	w.login(link)
	require.Equal(t, "old prompt", w.finished(r).Answer)
	require.Equal(t, "new prompt", w.finished(w.api.start("assistant", "Go.")).Answer)
}

// A sticky cache of size 0 replays the run from its history at every step.
func TestWithoutWorkflowCache(t *testing.T) {
	t.Parallel()
	o := example(t)
	o.env = []string{"TARRY_STICKY_CACHE=0"}
	w := newWorld(t, o)
	r := w.api.start("planner", "Plan the next release.")
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
}
