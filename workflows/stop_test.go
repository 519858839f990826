package workflows_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

func (w *world) stopCall(id string) {
	w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Invocation: id, Call: id})
}

// One call is cancelled: it is answered, and the model goes on with the other results (pitfall T31).
func TestCancelOneCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrange func(w *world)
		want    []string
		heads   string
	}{
		"one that runs": {
			arrange: func(w *world) {
				w.tools["t"] = running(func() { w.stopCall("call-2") })
			},
			want:  []string{"take", "model a", "tool t", "tool free", "settle cancelled", "model a", "finish done"},
			heads: `["se-call-2","re-call-3"]`,
		},
		"one that waits": {
			arrange: func(w *world) {
				w.tools["t"] = asks("r", never)
				w.after(time.Hour, func() { w.stopCall("call-2"); w.stopCall("call-2"); w.stopCall("call-0") })
				w.after(2*time.Hour, func() { w.resolve("r", wire.OutcomeGranted) }) // too late
			},
			want:  []string{"take", "model a", "tool t", "tool free", "mirror waiting_credential", "settle cancelled", "model a", "finish done"},
			heads: `["se-call-2","re-call-3"]`,
		},
		"one that is about to begin": {
			arrange: func(w *world) {
				w.at = func(name string) {
					if name == "model a" && w.count(name) == 1 {
						w.SignalWorkflowSkippingWorkflowTask(wire.SignalCancel, wire.Cancel{Invocation: "call-2", Call: "call-2"})
					}
				}
			},
			want:  []string{"take", "model a", "tool free", "settle cancelled", "model a", "finish done"},
			heads: `["se-call-2","re-call-3"]`,
		},
		"one that has its result": {
			arrange: func(w *world) {
				there := make(chan struct{})
				w.SetOnActivityCompletedListener(onTool("t", sync.OnceFunc(func() { close(there) })))
				w.tools["free"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
					<-there
					w.stopCall("call-2")
					return wire.ToolResult{Event: "re-" + in.Call}
				}
				w.tools["t"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult { // ignores its context
					return wire.ToolResult{Event: "re-" + in.Call}
				}
			},
			want:  []string{"take", "model a", "tool t", "tool free", "model a", "finish done"},
			heads: `["re-call-2","re-call-3"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t", "free"}}
			tc.arrange(w)
			w.ends(input(wire.ModeJob, llm("a")))
			require.ElementsMatch(t, tc.want, w.seen())
			require.JSONEq(t, `{"agent":"a","heads":`+tc.heads+`}`, w.input("model a", 2))
			require.Equal(t, wire.EndDone, w.finishes[0].End)
			require.False(t, w.finishes[0].Denied)
		})
	}
}

// Two calls wait for one request. Cancelling one leaves it to the other; cancelling both closes it.
func TestCancelOneOfTwoThatWaitForTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "u"}}
	w.tools["t"], w.tools["u"] = asks("r", never), asks("r", never)
	w.after(time.Hour, func() { w.stopCall("call-2") })
	w.after(2*time.Hour, func() {
		require.Equal(t, wire.StateWaitingCredential, w.status().State)
		require.Equal(t, []string{"r"}, w.status().Requests)
		w.stopCall("call-3")
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.JSONEq(t, `{"call":"call-2","reason":"cancelled"}`, w.input("settle cancelled", 1))
	require.JSONEq(t, `{"call":"call-3","request":"r","reason":"cancelled"}`, w.input("settle cancelled", 2))
	// The settling has written "running" to the store: that everything waits is told again.
	require.Equal(t, 2, w.count("mirror waiting_credential"))
}

// A call whose request was closed with another's asks anew: nobody is left waiting for what cannot come.
func TestRequestThatIsClosedIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "u"}}
	w.tools["t"] = asks("r", never)
	w.closes = true
	closing := make(chan struct{})
	w.SetOnActivityCompletedListener(onTool("t", sync.OnceFunc(func() { w.stopCall("call-2"); close(closing) }))) // t waits when that is heard
	w.tools["u"] = func(ctx context.Context, n int, in wire.ToolInput) wire.ToolResult {
		if n == 1 { // is told of the request that is being closed meanwhile
			<-closing
			return asks("r", never)(ctx, n, in)
		}
		return asks("r2", never)(ctx, n, in)
	}
	w.after(time.Hour, func() {
		require.Equal(t, []string{"r2"}, w.status().Requests)
		w.resolve("r2", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 3, w.count("tool u"))
	require.JSONEq(t, `{"agent":"a","heads":["se-call-2","re-call-3"]}`, w.input("model a", 2))
}

// A call that is cancelled in the task that ends the run is cancelled in the next one.
func TestCancelledCallIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "u"}}
	w.tools["t"], w.tools["u"] = asks("r1", never), asks("r2", never)
	w.after(time.Hour, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalContinueAsNew, nil)
		w.stopCall("call-2")
	})
	in := w.continued(w.run(input(wire.ModeJob, llm("a"))))
	in.Carry.Invocation.Cancelled = append(in.Carry.Invocation.Cancelled, "call-3") // as if it had come a moment later
	next := w.resume()
	next.ends(in)
	require.Equal(t, 2, next.count("settle cancelled"), "over both runs")
	require.Equal(t, 1, next.count("tool t"))
	require.Equal(t, 1, next.count("tool u"))
	require.Equal(t, "finish done", next.seen()[len(next.seen())-1])
}

// Whoever cancels the invocation ends all of it, cancelled calls included.
func TestCancelCallAndInvocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = running(func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalCancel, wire.Cancel{Invocation: "call-2", Call: "call-2"})
		w.cancel("inv-in-1")
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, []string{"take", "model a", "tool t", "finish cancelled"}, w.seen())
}
