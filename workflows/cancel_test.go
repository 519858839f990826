package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// running is a tool that runs until it is cancelled.
func running(started func()) tool {
	return func(ctx context.Context, _ int, _ wire.ToolInput) wire.ToolResult {
		started()
		<-ctx.Done()
		return wire.ToolResult{}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode    wire.Mode
		id      string
		arrange func(w *world)
		want    []string
	}{
		"an invocation that waits": {mode: wire.ModeJob, id: "inv-in-1", want: []string{
			"take", "model a", "tool t", "mirror waiting_credential", "finish cancelled",
		}},
		"a session that waits": {mode: wire.ModeChat, want: []string{
			"take", "model a", "tool t", "mirror waiting_credential", "finish cancelled",
		}},
		"one call waits, one runs": {mode: wire.ModeJob, id: "inv-in-1", arrange: func(w *world) {
			w.turns["a"] = [][]string{{"t", "slow"}}
			w.tools["slow"] = running(func() { w.cancel("inv-in-1") })
		}, want: []string{"take", "model a", "tool t", "tool slow", "finish cancelled"}},
		"a stale id is ignored": {mode: wire.ModeJob, id: "inv-in-0", arrange: func(w *world) {
			w.after(2*time.Hour, func() { w.resolve("r", wire.OutcomeGranted) })
		}, want: []string{"take", "model a", "tool t", "mirror waiting_credential", "tool t", "model a", "finish done"}},
		"while the message is being taken": {mode: wire.ModeJob, arrange: func(w *world) {
			w.at = func(name string) {
				if name == "take" {
					w.cancel("inv-in-1")
				}
			}
		}, want: []string{"take", "finish cancelled"}},
		"the session, while the message is being taken": {mode: wire.ModeChat, arrange: func(w *world) {
			w.at = func(name string) {
				if name == "take" {
					w.cancel("")
				}
			}
		}, want: []string{"take", "finish cancelled"}},
		"as the deadline is being acted on": {mode: wire.ModeJob, arrange: func(w *world) {
			w.tools["t"] = asks("r", w.Now().Add(time.Minute))
			w.at = func(name string) {
				if name == "close" {
					w.cancel("inv-in-1")
				}
			}
		}, want: []string{"take", "model a", "tool t", "mirror waiting_credential", "close", "finish cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t"}}
			w.tools["t"] = asks("r", never)
			w.after(time.Hour, func() { w.cancel(tc.id) })
			if tc.arrange != nil {
				tc.arrange(w)
			}
			w.ends(input(tc.mode, llm("a")))
			require.ElementsMatch(t, tc.want, w.seen())
			require.Len(t, w.finishes, 1)
			require.True(t, w.finishes[0].Closed)
		})
	}
}

// A chat goes on after one of its invocations was cancelled: the one that waits, and one that is queued behind it.
func TestChatGoesOnAfterCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inbox = []string{"in-1", "in-2", "in-3"}
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Minute, func() { w.message("in-2"); w.message("in-3") })
	w.after(time.Hour, func() { w.cancel("inv-in-2") })
	w.after(2*time.Hour, func() {
		require.Equal(t, wire.StateWaitingCredential, w.status().State)
		w.cancel("inv-in-1")
	})
	w.after(3*time.Hour, func() {
		w.resolve("r", wire.OutcomeGranted) // too late
		w.cancel("inv-in-1")                // again
	})
	w.after(4*time.Hour, func() { w.cancel("") })
	w.ends(input(wire.ModeChat, llm("a")))
	require.Equal(t, []string{
		"take", "model a", "tool t", "mirror waiting_credential", "finish cancelled",
		"take", "finish cancelled",
		"take", "model a", "finish done",
		"finish cancelled",
	}, w.seen())
}

// Whoever cancels the workflow in the Temporal UI gets an invocation that is written down as cancelled.
func TestTemporalCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, w.CancelWorkflow)
	require.Error(t, w.run(input(wire.ModeJob, llm("a"))))
	require.Equal(t, []string{"take", "model a", "tool t", "mirror waiting_credential", "finish cancelled"}, w.seen())
}
