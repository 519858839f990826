package workflows_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"tarry/agent"
	"tarry/wire"
)

// onTool calls f when a tool's activity has completed.
func onTool(name string, f func()) func(*activity.Info, converter.EncodedValue, error) {
	return func(info *activity.Info, _ converter.EncodedValue, _ error) {
		if info.ActivityType.Name == wire.ToolPrefix+name {
			f()
		}
	}
}

func exits(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
	return wire.ToolResult{Event: "re-" + in.Call, Escalate: true, Final: true}
}

// LoopAgent[A needs a login, B]: B does not start while A waits, and the iteration stays the first (pitfall P2).
func TestLoopWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.turns["b"] = [][]string{nil, {"exit"}}
	w.tools["t"], w.tools["exit"] = asks("r", never), exits
	w.after(10*24*time.Hour, func() {
		require.Equal(t, wire.Status{
			State: wire.StateWaitingCredential, Invocation: "inv-in-1", Requests: []string{"r"}, ModelCalls: 1, Iteration: 1, Agent: "a", Runs: 1,
		}, w.status())
		require.Zero(t, w.count("model b"))
		w.resolve("r", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, loop(3, llm("a"), llm("b"))))
	require.Equal(t, []string{
		"take", "model a", "tool t", "mirror waiting_credential", "tool t", "model a", "model b", // 1
		"model a", "model b", "tool exit", // 2
		"finish done",
	}, w.seen())
}

// exit_loop ends the loop at once: no further model call, and the children behind do not run (pitfall P33).
func TestLoopExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{nil, {"exit"}}
	w.tools["exit"] = exits
	w.ends(input(wire.ModeJob, sequence(loop(5, llm("a"), llm("b")), llm("c"))))
	require.Equal(t, []string{"take", "model a", "model b", "model a", "tool exit", "model c", "finish done"}, w.seen())
}

func TestLoopUsesItsIterationsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ends(input(wire.ModeJob, loop(3, llm("a"))))
	require.Equal(t, 3, w.count("model a"))
}

// A SequentialAgent does not stop when a child escalates; the loop around it does.
func TestSequenceGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"exit"}}
	w.tools["exit"] = exits
	w.ends(input(wire.ModeJob, loop(5, sequence(llm("a"), llm("b")), llm("c"))))
	require.Equal(t, []string{"take", "model a", "tool exit", "model b", "finish done"}, w.seen())
}

// skip_summarization of one call ends the turn, as in ADK, whatever the others say.
func TestSkipSummarization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"plain", "final"}}
	w.tools["final"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		return wire.ToolResult{Event: "re-" + in.Call, Final: true}
	}
	w.ends(input(wire.ModeJob, loop(1, llm("a"), llm("b"))))
	require.Equal(t, 1, w.count("model a"))
	require.JSONEq(t, `{"agent":"b","heads":["re-call-2","re-call-3"]}`, w.input("model b", 1))
}

// Toolsets are listed once per invocation.
func TestListedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"x"}, nil, {"x"}}
	w.ends(input(wire.ModeJob, loop(2, llm("a", "m", "n"), llm("b", "n"))))
	require.Equal(t, 1, w.count("list m"))
	require.Equal(t, 1, w.count("list n"))
	require.JSONEq(t, `{"agent":"b","heads":["ev-a-3"],"lists":["list-n"]}`, w.input("model b", 1))
}

// The limit of model calls ends the invocation, over the whole tree.
func TestModelCallLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := input(wire.ModeJob, loop(0, llm("a"), llm("b")))
	in.Plan.Limits.ModelCalls = 5
	w.ends(in)
	require.Equal(t, 3, w.count("model a"))
	require.Equal(t, 2, w.count("model b"))
	require.Equal(t, wire.EndLimit, w.finishes[0].End)
	require.True(t, w.finishes[0].Closed)
}

// A call that the model's activity has answered (an unknown tool) is never scheduled.
func TestAnsweredCallsAreNotScheduled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.RegisterActivityWithOptions(func(_ context.Context, in wire.ModelInput) (wire.ModelResult, error) {
		if w.note("model "+in.Agent, in) > 1 {
			return wire.ModelResult{Event: "last"}, nil
		}
		return wire.ModelResult{Event: "first", Calls: []wire.Call{{ID: "c0", Answer: "an0"}, {ID: "c1", Tool: "x"}, {ID: "c2", Answer: "an2"}}}, nil
	}, activity.RegisterOptions{Name: wire.ActivityCallModel, DisableAlreadyRegisteredCheck: true})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, []string{"take", "model a", "tool x", "model a", "finish done"}, w.seen())
	require.JSONEq(t, `{"agent":"a","heads":["an0","re-c1","an2"]}`, w.input("model a", 2))
}

func TestFailures(t *testing.T) {
	t.Parallel()
	t.Run("the model's activity reports a failure", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.RegisterActivityWithOptions(func(context.Context, wire.ModelInput) (wire.ModelResult, error) {
			return wire.ModelResult{Event: "e", Failed: true}, nil
		}, activity.RegisterOptions{Name: wire.ActivityCallModel, DisableAlreadyRegisteredCheck: true})
		w.ends(input(wire.ModeJob, loop(3, llm("a"))))
		require.Equal(t, []string{"take", "finish failed"}, w.seen())
		require.Equal(t, []string{"e"}, w.finishes[0].Heads)
	})
	t.Run("a tool's activity gives up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.turns["a"] = [][]string{{"t"}}
		w.RegisterActivityWithOptions(func(context.Context, wire.ToolInput) (wire.ToolResult, error) {
			return wire.ToolResult{}, temporal.NewNonRetryableApplicationError("no", wire.ErrorFinal, nil)
		}, activity.RegisterOptions{Name: "tool/t"})
		w.ends(input(wire.ModeJob, llm("a")))
		require.Equal(t, []string{"take", "model a", "settle failed", "model a", "finish done"}, w.seen())
	})
	t.Run("a plan of a kind that nobody knows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.ends(input(wire.ModeJob, agent.Node{Name: "x", Kind: "GraphAgent"}))
		require.Equal(t, []string{"take", "finish failed"}, w.seen())
	})
	t.Run("no plan", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		require.ErrorContains(t, w.run(wire.SessionInput{}), "no plan")
	})
}

// What crosses Temporal are ids and names, never content (invariant I2): every string in an activity's input is one that
// the workflow was given as an id, or a word of its own.
func TestInputsAreIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "free"}, {"exit"}}
	w.tools["t"], w.tools["exit"] = asks("r-1", w.Now().Add(time.Hour)), exits
	w.ends(input(wire.ModeJob, loop(2, llm("a", "set-1"))))
	id := regexp.MustCompile(`^(ev|re|se|call|list|inv|in|set|r)-[a-z0-9-]+$`)
	own := " a granted denied expired failed refused waiting_credential done "
	require.NotEmpty(t, w.inputs)
	for i, body := range w.inputs {
		require.LessOrEqual(t, len(body), 200, body)
		var v any
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		strs(v, func(s string) {
			require.True(t, id.MatchString(s) || strings.Contains(own, " "+s+" "), "%s was given %q", w.names[i], s)
		})
	}
}

func strs(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			strs(e, f)
		}
	case map[string]any:
		for _, e := range v {
			strs(e, f)
		}
	}
}

// What escalates ends every loop around it, as in ADK, where its event goes up through all of them; sessions that were begun
// before this was so end the nearest.
func TestEscalationEndsAllLoops(t *testing.T) {
	t.Parallel()
	def := agent.Definition{App: "app", Root: &agent.Agent{Name: "outer", Kind: agent.KindLoop, MaxIterations: 3, SubAgents: []*agent.Agent{
		{Name: "inner", Kind: agent.KindLoop, MaxIterations: 3, SubAgents: []*agent.Agent{{Name: "a", Kind: agent.KindLLM}}},
		{Name: "b", Kind: agent.KindLLM},
	}}}
	plan := def.Plan()
	require.True(t, plan.Root.Children[0].Escalates)
	require.False(t, plan.Root.Escalates)
	for name, tt := range map[string]struct {
		escalates bool
		says      []string
	}{
		"now":    {true, []string{"take", "model a", "tool exit", "finish done"}},
		"before": {false, []string{"take", "model a", "tool exit", "model b", "model a", "model a", "model a", "model b", "model a", "model a", "model a", "model b", "finish done"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"exit"}}
			w.tools["exit"] = exits
			in := input(wire.ModeJob, plan.Root)
			in.Plan.Root.Children = []agent.Node{plan.Root.Children[0], plan.Root.Children[1]}
			in.Plan.Root.Children[0].Escalates = tt.escalates
			w.ends(in)
			require.Equal(t, tt.says, w.seen())
		})
	}
}
