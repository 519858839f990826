package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

func parallel(children ...agent.Node) agent.Node {
	return agent.Node{Name: "parallel", Kind: agent.KindParallel, Children: children}
}

// Children run side by side, each on heads of its own; a wait blocks its child alone, and afterwards the heads are those of all
// children, in their order.
func TestParallelWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t"}}, [][]string{{"x"}, {"x"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, func() {
		require.Equal(t, wire.StateWaitingCredential, w.status().State)
		require.Equal(t, 3, w.count("model b"), "the other child has come to its end")
		require.Zero(t, w.count("model c"))
		w.resolve("r", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, sequence(parallel(llm("a"), llm("b")), llm("c"))))
	require.Equal(t, 2, w.count("model a"))
	require.JSONEq(t, `{"agent":"a","heads":["ev-in-1"]}`, w.input("model a", 1))
	require.JSONEq(t, `{"agent":"b","heads":["ev-in-1"]}`, w.input("model b", 1))
	require.Regexp(t, `"heads":\["ev-a-[0-9]+","ev-b-[0-9]+"\]`, w.input("model c", 1))
}

// Inside a loop: a round ends when all children have, and a child that escalates ends the loop after that round.
func TestParallelInLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{nil, nil, nil}, [][]string{{"x"}, nil, {"exit"}}
	w.tools["exit"] = exits
	w.ends(input(wire.ModeJob, loop(5, parallel(llm("a"), llm("b")))))
	require.Equal(t, 2, w.count("model a"))
	require.Equal(t, 3, w.count("model b"))
}

// A child that fails ends its siblings; what they said stays.
func TestParallelFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t"}}, [][]string{{"x"}, {"x"}, {"x"}, {"x"}}
	called := make(chan struct{})
	w.tools["t"] = func(ctx context.Context, n int, in wire.ToolInput) wire.ToolResult {
		close(called)
		return asks("r", never)(ctx, n, in)
	}
	w.tools["x"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		<-called // a has said something by then
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	in := input(wire.ModeJob, parallel(llm("a"), llm("b")))
	in.Plan.Limits.ModelCalls = 3
	w.ends(in)
	require.Equal(t, wire.EndLimit, w.finishes[0].End)
	require.Len(t, w.finishes[0].Heads, 2)
	require.Zero(t, w.count("tool t")-1)
}

func TestParallelIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t"}}, [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, func() { w.cancel("inv-in-1") })
	w.ends(input(wire.ModeJob, sequence(parallel(llm("a"), llm("b")), llm("c"))))
	require.Equal(t, wire.EndCancelled, w.finishes[0].End)
	require.Zero(t, w.count("model c"))
}

// A run continues as new inside parallel branches: one that waits is carried, one that works stops at its next boundary.
func TestContinueInsideParallelBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"], w.turns["c"] = [][]string{{"t"}}, [][]string{{"slow"}, {"x"}}, nil
	w.tools["t"] = asks("r", never)
	w.tools["slow"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		w.again()
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	in := w.continued(w.run(input(wire.ModeJob, parallel(llm("a"), llm("b"), llm("c")))))
	branches := in.Carry.Invocation.Frame.Branches
	require.Len(t, branches, 3)
	require.Equal(t, "r", branches[0].Frame.Calls[0].Request)
	require.False(t, branches[1].Done)
	require.True(t, branches[2].Done)
	require.Equal(t, 1, w.count("model b"))
	require.Equal(t, []string{"ev-in-1"}, in.Carry.Heads)

	next := w.resume()
	next.after(time.Hour, func() { next.resolve("r", wire.OutcomeGranted) })
	next.ends(in)
	require.Equal(t, 3, next.count("model b"))
	require.Equal(t, 2, next.count("model a"))
	require.Equal(t, 1, next.count("model c"))
	require.Equal(t, 1, next.count("tool slow"))
}
