package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

// hit is a limit as the invocation's ending names it.
type hit struct{ limit, most string }

func hits(w *world) (out []hit) {
	for _, f := range w.finishes {
		if f.End == wire.EndLimit {
			out = append(out, hit{f.Limit, f.Most})
		}
	}
	return out
}

// A limit counts over the whole tree, names itself, and is exceeded by one call for each branch at most (pitfall T30).
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits agent.Limits
		root   agent.Node
		tokens int
		want   hit
		calls  int
	}{
		"model calls of a loop":       {agent.Limits{ModelCalls: 5}, loop(0, llm("a"), llm("b")), 0, hit{"model_calls", "5"}, 5},
		"model calls of branches":     {agent.Limits{ModelCalls: 5}, loop(0, parallel(llm("a"), llm("b"))), 0, hit{"model_calls", "5"}, 5},
		"tokens of a loop":            {agent.Limits{Tokens: 250}, loop(0, llm("a"), llm("b")), 100, hit{"tokens", "250"}, 3},
		"tokens of branches":          {agent.Limits{Tokens: 250}, loop(0, parallel(llm("a"), llm("b"))), 100, hit{"tokens", "250"}, 4},
		"the session's calls":         {agent.Limits{Session: agent.SessionLimits{ModelCalls: 3}}, loop(0, llm("a"), llm("b")), 0, hit{"session.model_calls", "3"}, 3},
		"the session's tokens":        {agent.Limits{Tokens: 500, Session: agent.SessionLimits{Tokens: 250}}, loop(0, llm("a"), llm("b")), 100, hit{"session.tokens", "250"}, 3},
		"the first one that is there": {agent.Limits{ModelCalls: 2, Tokens: 200}, loop(0, llm("a"), llm("b")), 100, hit{"model_calls", "2"}, 2},
		"the default":                 {agent.Limits{}, loop(0, llm("a"), llm("b")), 100, hit{"model_calls", "500"}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tokens = tc.tokens
			in := input(wire.ModeJob, tc.root)
			in.Plan.Limits = tc.limits
			w.ends(in)
			require.Equal(t, []hit{tc.want}, hits(w))
			calls := w.count("model a") + w.count("model b")
			require.LessOrEqual(t, calls, tc.calls)
			require.GreaterOrEqual(t, calls, tc.calls-1, "a branch may be cut short as its call begins")
		})
	}
}

// A branch that waits for a person ends with the invocation.
func TestLimitEndsWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t", "t"}}, [][]string{{"x"}, {"x"}}
	w.tools["t"] = asks("r", never)
	in := input(wire.ModeJob, parallel(llm("a"), llm("b")))
	in.Plan.Limits.ModelCalls = 2
	w.ends(in)
	require.Equal(t, []hit{{"model_calls", "2"}}, hits(w))
}

// What a session has used counts over its invocations and runs; then each message is answered by the event alone.
func TestLimitsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tokens = 100
	w.turns["a"] = [][]string{nil, {"t"}}
	w.tools["t"] = asks("r", never)
	w.inbox = []string{"in-1", "in-2", "in-3", "in-4"}
	w.after(time.Hour, func() { w.message("in-2") })
	w.after(2*time.Hour, w.again)
	in := input(wire.ModeChat, llm("a", "m"))
	in.Plan.Limits.Session = agent.SessionLimits{Tokens: 300, ModelCalls: 10}
	next := w.continued(w.run(in))
	require.Equal(t, wire.Spent{ModelCalls: 2, Tokens: 200}, next.Carry.Spent)
	require.Equal(t, 200-100, next.Carry.Invocation.Tokens)

	after := w.resume()
	after.tokens, after.inbox = 100, []string{"in-3", "in-4"}
	after.after(time.Hour, func() { after.resolve("r", wire.OutcomeGranted) })
	after.after(2*time.Hour, func() { after.message("in-3"); after.message("in-4") })
	after.after(3*time.Hour, func() { after.cancel("") })
	after.ends(next)
	require.Equal(t, []hit{{"session.tokens", "300"}, {"session.tokens", "300"}}, hits(after))
	require.Equal(t, 3, after.count("model a"))
	require.Equal(t, 1, after.count("list m")-1, "nothing runs for a message that comes too late")
	require.Empty(t, after.finishes[3].Limit, "the session itself was cancelled")
}

// Time counts while anything works, and stands while all that is left waits for people.
func TestLimitOfTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}, {"slow"}}
	w.tools["t"] = asks("r", never)
	w.tools["slow"] = func(ctx context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		<-ctx.Done()
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	w.after(30*day, func() {
		require.Equal(t, wire.StateWaitingCredential, w.status().State)
		w.resolve("r", wire.OutcomeGranted)
	})
	in := input(wire.ModeJob, llm("a"))
	in.Plan.Limits.Duration = time.Second // the clock does not jump while an activity runs
	w.ends(in)
	require.Equal(t, []hit{{"duration", "1s"}}, hits(w))
	require.Equal(t, 1, w.count("tool slow"))
	require.Equal(t, 2, w.count("model a"))
}

// Time is carried to the next run, and counts for the session.
func TestLimitOfTimeContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t", "slow"}, {"x"}}
	w.tools["t"] = asks("r", never)
	w.after(day, w.again)
	in := input(wire.ModeChat, llm("a"))
	in.Plan.Limits.Duration, in.Plan.Limits.Session.Duration = time.Hour, 2*time.Hour
	next := w.continued(w.run(in))
	require.Less(t, next.Carry.Invocation.Worked, time.Hour)
	next.Carry.Invocation.Worked, next.Carry.Spent.Worked = time.Hour-time.Second, 2*time.Hour-time.Second/2

	after := w.resume()
	after.inbox = []string{"in-2"}
	after.tools["x"] = func(ctx context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		<-ctx.Done()
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	after.after(time.Hour, func() { after.resolve("r", wire.OutcomeGranted) })
	after.at = func(name string) { // not by the clock, which stands once a call was cancelled
		switch {
		case name == "finish limit" && after.count(name) == 1:
			after.message("in-2")
		case name == "finish limit":
			after.cancel("")
		}
	}
	after.ends(next)
	require.Equal(t, []hit{{"session.duration", "2h0m0s"}, {"session.duration", "2h0m0s"}}, hits(after))
	require.Equal(t, 1, after.count("tool x"))
}
