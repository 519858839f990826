package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// inputOf makes a tool that waits for something else than a login, once, and answers when it is called with that.
func inputOf(request string) tool {
	return func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		if in.Answered == request {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		return wire.ToolResult{Asked: wire.Asked{Request: request, Asking: "ask-" + request, Input: true}}
	}
}

// A question and long-running calls wait side by side and are answered in any order: each goes on when its own answer is
// there, and the model is called once, with all of them.
func TestPartialAnswers(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"q", "l", "m"}, {"m", "l", "q"}, {"l", "q", "m"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"q", "l", "m"}}
			for _, name := range order {
				w.tools[name] = inputOf("r" + name)
			}
			for i, name := range order {
				at := time.Duration(i+1) * time.Hour
				w.after(at, func() { w.resolve("r"+name, wire.OutcomeAnswered) })
				w.after(at+time.Minute, func() {
					require.Equal(t, 2, w.count("tool "+name), "goes on by itself")
					if i < len(order)-1 {
						require.Equal(t, 1, w.count("model a"))
						require.Equal(t, wire.StateWaitingInput, w.status().State)
						require.Len(t, w.status().Requests, len(order)-1-i)
					}
				})
			}
			w.ends(input(wire.ModeJob, llm("a")))
			require.Equal(t, 2, w.count("model a"))
			require.False(t, w.finishes[0].Denied)
		})
	}
}

// An answer that comes while the run continues as new is not lost, and one that was only announced is waited for again.
func TestAnsweredWhileContinuing(t *testing.T) {
	t.Parallel()
	first := newWorld(t)
	first.turns["a"] = [][]string{{"l"}}
	first.tools["l"] = inputOf("call-2")
	first.after(time.Hour, func() { first.SignalWorkflow(wire.SignalContinueAsNew, nil) })
	in := first.continued(first.run(input(wire.ModeJob, llm("a"))))
	require.Equal(t, "call-2", in.Carry.Invocation.Frame.Calls[0].Request)
	require.True(t, in.Carry.Invocation.Frame.Calls[0].Input)

	second := newWorld(t)
	answered := false
	second.tools["l"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		if answered {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		return wire.ToolResult{Asked: wire.Asked{Request: "call-2", Asking: "ask", Input: true}}
	}
	second.after(time.Hour, func() { second.resolve("call-2", wire.OutcomeAnswered) }) // the row says otherwise
	second.after(2*time.Hour, func() {
		require.Equal(t, wire.StateWaitingInput, second.status().State)
		answered = true
		second.resolve("call-2", wire.OutcomeAnswered)
	})
	second.turns["a"] = nil
	second.ends(in)
	require.Equal(t, 2, second.count("tool l"))
}
