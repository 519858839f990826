package workflows_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
	"tarry/workflows"
)

// A child that asks the loop to stop is heard, also where the run goes on for another before its parent is done.
func TestEscalationIsCarried(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root  agent.Node
		turns [][]string
		flow  workflows.AgentFunc
	}{
		"in a sequence":     {root: sequence(llm("a"), llm("b")), turns: [][]string{{"exit"}}},
		"beside a transfer": {root: agent.Node{Name: "a", Kind: agent.KindLLM, Children: []agent.Node{llm("b")}}, turns: [][]string{{"exit", "to b"}}},
		"in a custom agent": {root: custom("flow", llm("a"), llm("b")), flow: func(a *workflows.Agent) error {
			return a.Loop("l", func(i int) (bool, error) {
				if i == 0 {
					return false, a.Emit(workflows.Emission{Escalate: true})
				}
				_, err := a.Run("b")
				return true, err
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.custom["flow"] = tt.flow
			w.turns["a"], w.turns["b"] = tt.turns, [][]string{{"x"}}
			w.tools["exit"] = exits
			last := w
			runs := chain(t, w, input(wire.ModeJob, loop(3, tt.root)), func(w *world, run int) {
				last = w
				if run == 1 {
					w.at = func(name string) {
						if name == "tool x" {
							w.again()
						}
					}
				}
			})
			require.Equal(t, 2, runs)
			require.Equal(t, 2, last.count("model b"), "the loop stops")
			require.Equal(t, len(tt.turns), last.count("model a"))
		})
	}
}

// A branch that is to go on in another run does not wait for one that sleeps.
func TestSleepHoldsUpNoRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.custom["sleeper"] = func(a *workflows.Agent) error { return a.Sleep(24 * time.Hour) }
	w.turns["a"] = [][]string{{"x"}, {"x"}}
	w.at = func(name string) {
		if name == "tool x" {
			w.again()
		}
	}
	start := w.Now()
	in := w.continued(w.run(input(wire.ModeJob, parallel(custom("sleeper"), llm("a")))))
	require.Less(t, w.Now().Sub(start), time.Hour)
	require.Len(t, in.Carry.Invocation.Frame.Branches, 2)
}

// While a branch works, nobody is told that all others wait.
func TestStatusWhileABranchWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t"}}, [][]string{{"x"}, {"x"}, {"x"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, func() { w.resolve("r", wire.OutcomeGranted) })
	w.ends(input(wire.ModeJob, parallel(llm("a"), sequence(llm("b"), llm("c")))))
	names := w.seen()
	require.Equal(t, 1, w.count("mirror waiting_credential"), names)
	require.Greater(t, slices.Index(names, "mirror waiting_credential"), slices.Index(names, "model c"), names)
}

// What goes on waiting is no news as its run ends for the next run.
func TestStatusAsARunEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "u"}}
	w.tools["t"] = asks("r", never)
	w.tools["u"] = func(context.Context, int, wire.ToolInput) wire.ToolResult {
		return wire.ToolResult{Asked: wire.Asked{Request: "s", Confirmation: true}}
	}
	w.after(time.Hour, w.again)
	w.continued(w.run(input(wire.ModeJob, llm("a"))))
	require.Equal(t, 1, w.count("mirror waiting_credential"))
	require.Zero(t, w.count("mirror waiting_confirmation"))
}

// Temporal's own cancellation is acted on where it comes as a journal is being stored, too.
func TestCancelAsAJournalIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.custom["reader"] = func(a *workflows.Agent) error {
		for range 30 {
			if _, err := a.State("key", new(string)); err != nil {
				return err
			}
		}
		_, err := a.Run("writer")
		return err
	}
	w.read = func(wire.ReadInput) wire.ReadResult {
		return wire.ReadResult{Value: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)}
	}
	w.turns["writer"] = [][]string{{"x"}}
	w.at = func(name string) {
		switch name {
		case "tool x":
			w.again()
		case "keep":
			w.CancelWorkflow()
		}
	}
	require.ErrorContains(t, w.run(input(wire.ModeJob, custom("reader", llm("writer")))), "canceled")
	require.Equal(t, 1, w.count("finish cancelled"), w.seen())
}

// A message interrupts what waits, also after one of several calls was cancelled and its request closed.
func TestInterruptAfterACancelledCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.closes = true
	w.turns["a"] = [][]string{{"t", "u"}}
	w.tools["t"], w.tools["u"] = asks("r", never), asks("s", never)
	w.inbox = []string{"in-1", "in-2"}
	w.after(time.Hour, func() { w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Invocation: "call-2", Call: "call-2"}) })
	w.after(2*time.Hour, func() { w.message("in-2") })
	w.after(3*time.Hour, func() { w.cancel("") })
	in := input(wire.ModeChat, llm("a"))
	in.Plan.OnMessage = agent.MessageInterrupt
	w.ends(in)
	require.Equal(t, wire.EndSuperseded, w.finishes[0].End)
}

// A loop whose children's callbacks answer for them goes on in other runs too.
func TestLoopOfCallbacksContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says = true
	a := llm("a")
	a.Before = true
	w.at = func(string) {
		if w.count("before a") == 5 {
			w.again()
		}
	}
	in := w.continued(w.run(input(wire.ModeJob, loop(10, a))))
	require.Equal(t, 5, in.Carry.Invocation.Frame.Iteration)
	next := w.resume()
	next.says = true
	next.ends(in)
	require.Equal(t, 10, next.count("before a"))
}

// A change of a custom agent's function, marked by a version, fits runs of the time before that went on for others.
func TestVersionOfARunThatWentOn(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string]wire.Frame{
		"before a step that is done":      {Journal: []wire.Step{{Op: "run a"}, {Op: "run b"}}},
		"before a step that is under way": {Journal: []wire.Step{{Op: "run a"}}, Sub: &wire.Frame{Calls: []wire.OpenCall{{Call: wire.Call{ID: "c", Tool: "t"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var versions []int
			w.custom["flow"] = func(a *workflows.Agent) error {
				if _, err := a.Run("a"); err != nil {
					return err
				}
				old := a.Version("new", -1, 1)
				next := "b"
				if old == 1 {
					next = "c"
				}
				if _, err := a.Run(next); err != nil {
					return err
				}
				versions = append(versions, old, a.Version("newer", -1, 1))
				_, err := a.Run("c")
				return err
			}
			in := input(wire.ModeJob, custom("flow", llm("a"), llm("b"), llm("c")))
			in.Carry = &wire.Carry{Heads: []string{"e"}, Invocation: &wire.Invocation{ID: "i", Frame: frame}}
			w.ends(in)
			require.Equal(t, []int{-1, 1}, versions)
			require.Equal(t, 1, w.count("model c"))
		})
	}
}
