package workflows_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

func (w *world) again() { w.SignalWorkflow(wire.SignalContinueAsNew, nil) }

// resume runs the next run of a chain in a world of its own that goes on where the last one stood.
func (w *world) resume() *world {
	w.t.Helper()
	next := newWorld(w.t)
	next.inbox, next.turns, next.tools, next.lists, next.counts, next.ids = w.inbox, w.turns, w.tools, w.lists, w.counts, w.ids
	maps.Copy(next.custom, w.custom)
	next.read, next.kept, next.record, next.says = w.read, w.kept, w.record, w.says
	return next
}

// A run continues as new at a turn boundary inside an invocation; frames say where each agent stands (pitfalls T2, T23).
func TestContinueInsideAnInvocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inbox = []string{"in-1", "in-2"}
	w.turns["a"] = [][]string{{"x"}, nil, {"x"}, {"x"}, nil}
	w.turns["b"] = [][]string{nil, {"x"}, {"exit"}}
	w.tools["exit"] = exits
	w.at = func(name string) {
		if name == "model a" && w.count(name) == 4 { // second turn of the second iteration
			w.message("in-2")
			w.resolve("early", wire.OutcomeGranted)
			w.again()
		}
	}
	in := w.continued(w.run(input(wire.ModeChat, sequence(loop(5, llm("a", "m"), llm("b")), llm("c")))))
	require.Equal(t, 4, w.count("model a"))
	require.Equal(t, &wire.Carry{
		Taken: []string{"in-1"}, Pending: []string{"in-2"}, Early: []wire.Resolved{{Request: "early", Outcome: wire.OutcomeGranted}},
		Heads: []string{"re-call-8"}, Runs: 1,
		Invocation: &wire.Invocation{
			ID: "inv-in-1", ModelCalls: 5, Lists: map[string]string{"m": "list-m"},
			Frame: wire.Frame{Sub: &wire.Frame{Iteration: 1, Sub: &wire.Frame{}}},
		},
	}, in.Carry)

	next := w.resume()
	next.after(time.Hour, func() { next.cancel("") })
	next.ends(in)
	require.Equal(t, []string{
		"model a", "model b", "tool x", "model b", "tool exit", "model c", "finish done", // nothing is listed again
		"take", "list m", "model a", "model b", "model a", "model b", "model a", "model b", "model a", "model b", "model a", "model b", "model c", "finish done",
		"finish cancelled",
	}, next.seen())
	require.JSONEq(t, `{"agent":"a","heads":["re-call-8"],"lists":["list-m"]}`, next.input("model a", 1))
}

// A run continues as new while calls wait: what they wait for stands in the frame, with what was asked so far. A call that
// still runs is waited for, and none runs again that has its response.
func TestContinueWhileWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"free", "t", "u"}}
	w.tools["t"], w.tools["u"] = asks("r1", never), asks("r2", never)
	w.after(time.Hour, func() {
		require.Equal(t, []string{"r1", "r2"}, w.status().Requests)
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalResolved, wire.Resolved{Request: "r2", Outcome: wire.OutcomeGranted})
		w.again() // in one task
	})
	in := w.continued(w.run(input(wire.ModeJob, llm("a"))))
	require.Equal(t, []string{"ev-a-1"}, in.Carry.Heads)
	require.Equal(t, []wire.OpenCall{
		{Call: wire.Call{ID: "call-2", Tool: "free"}, Event: "re-call-2"},
		{Call: wire.Call{ID: "call-3", Tool: "t"}, Asked: wire.Asked{Request: "r1", Asking: "ask-r1"}, Logins: 1},
		{Call: wire.Call{ID: "call-4", Tool: "u"}, Event: "re-call-4", Logins: 1},
	}, in.Carry.Invocation.Frame.Calls)

	next := w.resume()
	next.after(time.Hour, func() {
		require.Equal(t, wire.StateWaitingCredential, next.status().State)
		require.Equal(t, []string{"r1"}, next.status().Requests)
		next.resolve("r1", wire.OutcomeGranted)
	})
	next.ends(in)
	require.Equal(t, []string{"mirror go on", "mirror waiting_credential", "tool t", "model a", "finish done"}, next.seen())
	require.JSONEq(t, `{"agent":"a","heads":["re-call-2","re-call-3","re-call-4"]}`, next.input("model a", 1))
}

// Deadlines are absolute: a wait that was carried ends when it would have ended.
func TestDeadlineIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := w.Now()
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", start.Add(3*time.Hour))
	w.after(time.Hour, w.again)
	in := w.continued(w.run(input(wire.ModeJob, llm("a"))))
	next := w.resume()
	next.SetStartTime(start.Add(time.Hour))
	next.ends(in)
	require.Equal(t, []string{"mirror go on", "mirror waiting_credential", "close", "settle expired", "model a", "finish done"}, next.seen())
	require.InDelta(t, 3*time.Hour, next.Now().Sub(start), float64(time.Minute))
}

// A run that waits goes on in new runs as often as it is told to, and each signal is acted on once.
func TestManySignalsOverManyRuns(t *testing.T) {
	t.Parallel()
	const calls, runs = 60, 10
	w := newWorld(t)
	var names []string
	for i := range calls {
		name := fmt.Sprintf("t%d", i)
		w.tools[name] = asks("r"+name, never)
		names = append(names, name)
	}
	w.turns["a"] = [][]string{names}
	in := input(wire.ModeJob, llm("a"))
	for run := range runs {
		w.after(time.Hour, func() {
			for _, name := range names[run*calls/runs : (run+1)*calls/runs] {
				for range 3 { // delivered more than once
					w.resolve("r"+name, wire.OutcomeGranted)
				}
			}
			if run < runs-1 {
				w.again()
			}
		})
		if run < runs-1 {
			in = w.continued(w.run(in))
			w = w.resume()
		}
	}
	w.ends(in)
	for _, name := range names {
		require.Equal(t, 2, w.count("tool "+name), name)
	}
	require.Equal(t, 2, w.count("model a"))
}

// A grant that came early in one run is found by a wait of the next.
func TestEarlyOutcomeIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"x"}, {"t"}}
	w.tools["t"] = asks("r", never)
	w.at = func(name string) {
		if name == "tool x" {
			w.resolve("r", wire.OutcomeGranted)
			w.again()
		}
	}
	in := w.continued(w.run(input(wire.ModeJob, llm("a"))))
	next := w.resume()
	next.ends(in)
	require.Equal(t, []string{"model a", "tool t", "tool t", "model a", "finish done"}, next.seen())
}

// Signals that arrive in the very task that ends the run are not lost: whatever was sent is acted on, in this run or in
// the next (pitfall T23).
func TestSignalsAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	// ending is a run that reaches its limit in the task that brings the first model's answer and the signals.
	ending := func(t *testing.T, mode wire.Mode, signals func(w *world, send func(name string, payload any))) (*world, wire.SessionInput) {
		t.Helper()
		w := newWorld(t)
		w.SetCurrentHistoryLength(100)
		w.at = func(name string) {
			if name == "model a" {
				signals(w, w.SignalWorkflowSkippingWorkflowTask)
			}
		}
		in := input(mode, sequence(llm("a"), llm("b")))
		in.Timing.ContinueAfter = 1
		in.Carry = &wire.Carry{Invocation: &wire.Invocation{ID: "inv-in-1"}, Heads: []string{"ev-in-1"}}
		return w, in
	}
	t.Run("message and outcome", func(t *testing.T) {
		t.Parallel()
		w, in := ending(t, wire.ModeChat, func(_ *world, send func(string, any)) {
			send(wire.SignalMessage, wire.Message{Inbox: "in-2"})
			send(wire.SignalMessage, wire.Message{Inbox: "in-3"})
			send(wire.SignalResolved, wire.Resolved{Request: "r", Outcome: wire.OutcomeDenied})
		})
		next := w.continued(w.run(in))
		require.Equal(t, []string{"in-2", "in-3"}, next.Carry.Pending)
		require.Equal(t, []wire.Resolved{{Request: "r", Outcome: wire.OutcomeDenied}}, next.Carry.Early)
	})
	t.Run("cancel of the invocation", func(t *testing.T) {
		t.Parallel()
		w, in := ending(t, wire.ModeJob, func(_ *world, send func(string, any)) {
			send(wire.SignalCancel, wire.Cancel{Invocation: "inv-in-1"})
		})
		in = w.continued(w.run(in))
		require.Equal(t, []string{"inv-in-1"}, in.Carry.Cancelled)
		next := w.resume()
		next.ends(in)
		require.Equal(t, []string{"finish cancelled"}, next.seen())
	})
	t.Run("cancel of the session", func(t *testing.T) {
		t.Parallel()
		w, in := ending(t, wire.ModeChat, func(_ *world, send func(string, any)) {
			send(wire.SignalCancel, wire.Cancel{})
		})
		w.ends(in)
		require.Equal(t, []string{"model a", "finish cancelled"}, w.seen())
		require.True(t, w.finishes[0].Closed)
	})
}

func TestContinueWhenIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.after(time.Hour, w.again)
	in := w.continued(w.run(input(wire.ModeChat, llm("a"))))
	require.Nil(t, in.Carry.Invocation)
	require.Equal(t, []string{"in-1"}, in.Carry.Taken)
	require.Equal(t, []string{"ev-a-1", "ev-finish"}, in.Carry.Heads)
}

// A history that has grown to its limit is left at the next boundary, but never before the run has done anything.
func TestContinueAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"x"}, {"x"}}
	w.SetCurrentHistoryLength(100)
	limited := input(wire.ModeJob, llm("a"))
	limited.Timing.ContinueAfter = 1
	in := w.continued(w.run(limited))
	require.Equal(t, []string{"take"}, w.seen())
	runs := 1
	for ; in.Carry.Invocation != nil && runs < 10; runs++ {
		w = w.resume()
		w.SetCurrentHistoryLength(100)
		err := w.run(in)
		if err == nil {
			break
		}
		in = w.continued(err)
	}
	require.Equal(t, 3, runs)
	require.Equal(t, []string{"model a", "finish done"}, w.seen())
}
