package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

// An invocation of 5,000 tool calls, ten at a time, in a loop: with a limit that makes every turn a run of its own it does
// exactly what it does in one run, call by call, to the same heads (pitfalls T1, T2).
func TestFiveThousandCalls(t *testing.T) {
	t.Parallel()
	const turns, each, iterations = 500, 10, 5
	var answer []string
	for i := range each {
		answer = append(answer, fmt.Sprintf("t%d", i))
	}
	script := func() (out [][]string) {
		for i := range turns + iterations {
			if i%(turns/iterations+1) == turns/iterations {
				out = append(out, nil) // ends an iteration
				continue
			}
			out = append(out, answer)
		}
		return out
	}
	start := func() wire.SessionInput {
		in := input(wire.ModeJob, loop(iterations, llm("a", "m")))
		in.Plan.Limits = agent.Limits{ModelCalls: turns + iterations}
		return in
	}
	whole := newWorld(t)
	whole.turns["a"] = script()
	whole.ends(start())

	w, in, runs := newWorld(t), start(), 1
	w.turns["a"] = script()
	in.Timing.ContinueAfter = 1
	var names, inputs []string
	for ; ; runs++ {
		w.SetCurrentHistoryLength(100)
		err := w.run(in)
		names, inputs = append(names, w.names...), append(inputs, w.inputs...)
		if err == nil {
			break
		}
		in = w.continued(err)
		w = w.resume()
	}
	require.Equal(t, turns+iterations+1, runs)
	require.Equal(t, turns*each, calls(names))
	require.Equal(t, turns*each, calls(whole.names))
	require.Equal(t, sorted(whole.names, whole.inputs), sorted(names, inputs), "the same activities with the same inputs")
	require.Equal(t, whole.finishes, w.finishes)
}

func calls(names []string) (n int) {
	for _, name := range names {
		if strings.HasPrefix(name, "tool ") {
			n++
		}
	}
	return n
}

// sorted puts side by side what ran side by side.
func sorted(names, inputs []string) (out []string) {
	for i, name := range names {
		out = append(out, name+" "+inputs[i])
	}
	slices.Sort(out)
	return out
}
