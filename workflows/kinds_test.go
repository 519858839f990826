package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

// kinds is a tree with every kind of agent, and a tool that asks for a login behind each.
func kinds() agent.Node {
	expert := sequence(llm("expert"), llm("checker"))
	expert.Name, expert.Before, expert.After = "office", true, true
	desk := llm("desk")
	desk.AgentTools, desk.After = []agent.Node{expert}, true
	desk.Children = []agent.Node{llm("clerk")}
	side := agent.Node{Name: "side", Kind: agent.KindParallel, Children: []agent.Node{desk, llm("other")}}
	return sequence(loop(2, side), storyPlan(), llm("end"))
}

func kindsWorld(t *testing.T) *world {
	t.Helper()
	w := storyWorld(t)
	w.turns["desk"] = [][]string{{"agent office", "t"}, {"to clerk"}, {"agent office"}, nil}
	w.turns["expert"] = [][]string{{"t"}, nil, {"t"}}
	w.turns["clerk"] = [][]string{{"t"}, {"to desk"}}
	w.turns["other"] = [][]string{{"t"}}
	w.at = nil
	return w
}

// done counts what was done, whatever the order: what runs side by side ends in any.
func done(names []string) map[string]int {
	out := map[string]int{}
	for _, n := range names {
		if !strings.HasPrefix(n, "mirror") { // depends on when a run ends
			out[n]++
		}
	}
	return out
}

// Wherever a run ends and another begins, in every kind of agent and while calls wait, the same is done.
func TestEveryKindContinues(t *testing.T) {
	t.Parallel()
	answer := func(w *world) {
		for at := 30 * time.Minute; at < 20*time.Hour; at += time.Hour {
			w.after(at, func() { w.resolve("r", wire.OutcomeGranted) })
		}
	}
	w := kindsWorld(t)
	last := w
	require.Equal(t, 1, chain(t, w, input(wire.ModeJob, kinds()), func(w *world, _ int) { answer(w); last = w }))
	names := last.seen()
	want := done(names)
	for name, n := range map[string]int{
		"model desk": 5, "before office": 2, "after office": 2, "model expert": 4, "model checker": 2, "return": 2, "model clerk": 2, "after desk": 3, "model other": 3, "model end": 1,
	} {
		require.Equal(t, n, want[name], name)
	}
	for at := 0; at < len(names)-1; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := kindsWorld(t)
			last := w
			runs := chain(t, w, input(wire.ModeJob, kinds()), func(w *world, run int) {
				answer(w)
				last = w
				if run == 1 {
					w.at = func(string) {
						if len(w.seen()) == at+1 {
							w.again()
						}
					}
				}
			})
			require.Equal(t, want, done(last.seen()))
			require.GreaterOrEqual(t, runs, 1+min(1, len(names)-3-at), "it continues as new")
		})
	}
}

// What an agent behind a tool says has the call for its scope, and begins where the call was made.
func TestAgentBehindATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expert := llm("expert", "m")
	root := llm("root")
	root.AgentTools = []agent.Node{expert}
	w.turns["root"], w.turns["expert"] = [][]string{{"agent expert"}}, [][]string{{"t"}}
	w.ends(input(wire.ModeJob, root))
	require.Equal(t, []string{"take", "model root", "list m", "model expert", "tool t", "model expert", "return", "model root", "finish done"}, w.seen())
	require.JSONEq(t, `{"agent":"expert","toolset":"m","heads":["ev-root-1"],"scope":"call-2"}`, w.input("list m", 1))
	require.JSONEq(t, `{"agent":"expert","heads":["ev-root-1"],"lists":["list-m"],"scope":"call-2"}`, w.input("model expert", 1))
	require.JSONEq(t, `{"call":"call-2","heads":["ev-expert-5"]}`, w.input("return", 1))
	require.JSONEq(t, `{"agent":"root","heads":["re-call-2"]}`, w.input("model root", 2))
}

// A call of an agent that is cancelled ends what runs behind it; what was said stays.
func TestAgentBehindACancelledCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := llm("root")
	root.AgentTools = []agent.Node{llm("expert")}
	w.turns["root"], w.turns["expert"] = [][]string{{"agent expert"}}, [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, func() { w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Call: "call-2"}) })
	w.ends(input(wire.ModeJob, root))
	require.True(t, slices.Contains(w.seen(), "settle cancelled"))
	require.Equal(t, 2, w.count("model root"))
	require.Equal(t, 1, w.count("model expert"))
}

// A conversation goes to and fro between agents without end and without a deeper frame.
func TestTransfersToAndFro(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := llm("root")
	root.Children = []agent.Node{llm("child")}
	for range 20 {
		w.turns["root"] = append(w.turns["root"], []string{"to child"})
		w.turns["child"] = append(w.turns["child"], []string{"to root"})
	}
	w.at = func(name string) {
		if name == "model child" && w.count(name) == 10 {
			w.again()
		}
	}
	in := w.continued(w.run(input(wire.ModeJob, root)))
	require.Equal(t, wire.Frame{Agent: "root"}, in.Carry.Invocation.Frame)
	next := w.resume()
	next.ends(in)
	require.Equal(t, 21, next.count("model root"))
	require.Equal(t, 20, next.count("model child"))
}
