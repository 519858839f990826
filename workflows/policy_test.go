package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

const day = 24 * time.Hour

// asksAs makes a tool that asks in one of the ways there are.
func asksAs(asked wire.Asked) tool {
	return func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		if in.Answered == asked.Request {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		return wire.ToolResult{Asked: asked}
	}
}

func policy(n agent.Node, remind time.Duration, on agent.OnDeadline) agent.Node {
	n.Remind, n.OnDeadline = remind, on
	return n
}

// At the deadline the invocation ends, if the agent's policy says so: whatever is waited for, and whatever else goes on.
func TestDeadlineFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked wire.Asked
		state wire.State
	}{
		"login":        {wire.Asked{Request: "r"}, wire.StateWaitingCredential},
		"confirmation": {wire.Asked{Request: "r", Confirmation: true}, wire.StateWaitingConfirmation},
		"input":        {wire.Asked{Request: "r", Input: true}, wire.StateWaitingInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t", "never"}}
			tc.asked.Deadline = w.Now().Add(day)
			w.tools["t"] = asksAs(tc.asked)
			w.tools["never"] = asks("other", never)
			w.after(time.Hour, func() { require.Contains(t, []wire.State{tc.state, wire.StateWaitingCredential}, w.status().State) })
			w.ends(input(wire.ModeJob, policy(llm("a"), 0, agent.DeadlineFail)))
			require.Equal(t, wire.FinishInput{
				Invocation: "inv-in-1", End: wire.EndFailed, Heads: w.finishes[0].Heads, Denied: true, Closed: true, Expired: "r",
			}, w.finishes[0])
			require.Zero(t, w.count("settle expired"), "what ends the invocation answers its calls")
			require.Equal(t, 1, w.count("model a"))
		})
	}
}

// The policy is that of the agent that waits: another's expired login is answered, and the model goes on.
func TestDeadlineDenies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"], w.turns["b"] = [][]string{{"t"}}, [][]string{{"u"}}
	w.tools["t"], w.tools["u"] = asks("rt", w.Now().Add(day)), asks("ru", w.Now().Add(2*day))
	w.ends(input(wire.ModeJob, parallel(llm("a"), policy(llm("b"), 0, agent.DeadlineFail))))
	require.Equal(t, 2, w.count("model a"))
	require.Equal(t, 1, w.count("model b"))
	require.Equal(t, "ru", w.finishes[0].Expired)
}

// A login that came a moment before the deadline wins.
func TestDeadlineFailsUnlessAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", w.Now().Add(day))
	w.close = func(wire.CloseInput) wire.CloseResult { return wire.CloseResult{Outcome: wire.OutcomeGranted} }
	w.ends(input(wire.ModeJob, policy(llm("a"), 0, agent.DeadlineFail)))
	require.Equal(t, wire.EndDone, w.finishes[0].End)
}

func TestDeadlineOfAListingFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lists["m"] = func(int, wire.ListInput) wire.ListResult {
		return wire.ListResult{Asked: wire.Asked{Request: "r", Asking: "ask", Deadline: w.Now().Add(day)}}
	}
	w.ends(input(wire.ModeJob, policy(llm("a", "m"), 0, agent.DeadlineFail)))
	require.Equal(t, "r", w.finishes[0].Expired)
	require.Zero(t, w.count("model a"))
}

// Reminders come at fixed times, until the answer or the deadline, and once for all calls that wait for one request.
func TestReminders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deadline time.Duration
		answer   time.Duration
		want     int
	}{
		"until the answer":   {answer: 10*day + time.Hour, want: 10},
		"until the deadline": {deadline: 3 * day, want: 2},
		"none in time":       {answer: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t", "u"}}
			deadline := never
			if tc.deadline > 0 {
				deadline = w.Now().Add(tc.deadline)
			}
			w.tools["t"], w.tools["u"] = asks("r", deadline), asks("r", deadline)
			if tc.answer > 0 {
				w.after(tc.answer, func() {
					require.Equal(t, wire.StateWaitingCredential, w.status().State)
					w.resolve("r", wire.OutcomeGranted)
				})
			}
			w.ends(input(wire.ModeJob, policy(llm("a"), day, "")))
			require.Equal(t, tc.want, w.count("remind r"))
			for i := range tc.want {
				require.JSONEq(t, fmt.Sprintf(`{"request":"r","number":%d}`, i+1), w.input("remind r", i+1))
			}
			require.Equal(t, 1, w.count("mirror waiting_credential"), "a reminder changes nothing else")
			require.Equal(t, wire.EndDone, w.finishes[0].End)
		})
	}
}

// An agent without reminders gets none from another that waits for the same login, and the toolset's login counts as any other.
func TestRemindersOfAListing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lists["m"] = func(_ int, in wire.ListInput) wire.ListResult {
		if in.Answered == "r" {
			return wire.ListResult{List: "list"}
		}
		return wire.ListResult{Asked: wire.Asked{Request: "r", Asking: "ask"}}
	}
	w.turns["b"] = [][]string{{"t"}}
	w.tools["t"] = asks("other", never)
	w.after(2*day+time.Hour, func() { w.resolve("r", wire.OutcomeGranted); w.resolve("other", wire.OutcomeGranted) })
	w.ends(input(wire.ModeJob, parallel(policy(llm("a", "m"), day, ""), llm("b"))))
	require.Equal(t, 2, w.count("remind r"))
	require.Zero(t, w.count("remind other"))
	require.Contains(t, w.input("model a", 1), `"heads":["ask"]`)
}

// A wait that reminds goes through new runs: the next reminder keeps its time and its number, of a call and of a listing.
func TestRemindersContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking := func(_ int, in wire.ListInput) wire.ListResult {
		if in.Answered == "rl" {
			return wire.ListResult{List: "list"}
		}
		return wire.ListResult{Asked: wire.Asked{Request: "rl", Asking: "ask"}}
	}
	w.lists["m"] = asking
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("rt", never)
	w.after(day+time.Hour, w.again)
	root := parallel(policy(llm("a"), day, ""), policy(llm("b", "m"), day, ""))
	begun := w.Now()
	in := w.continued(w.run(input(wire.ModeJob, root)))
	reminders := in.Carry.Invocation.Reminders
	require.Len(t, reminders, 2)
	for _, r := range reminders {
		require.Equal(t, 1, r.Sent)
		require.Equal(t, begun.Add(2*day).Unix(), r.Next.Unix())
	}

	next := w.resume()
	next.lists["m"] = asking
	next.SetStartTime(begun.Add(day + 2*time.Hour))
	next.after(21*time.Hour, func() { require.Equal(t, 1, next.count("remind rt")) })
	next.after(23*time.Hour, func() {
		require.Equal(t, 2, next.count("remind rt"))
		next.resolve("rt", wire.OutcomeGranted)
		next.resolve("rl", wire.OutcomeGranted)
	})
	next.ends(in)
	require.JSONEq(t, `{"request":"rt","number":2}`, next.input("remind rt", 1))
	require.Equal(t, 2, next.count("remind rl"))
}

// The wait of years continues as new by its reminders alone.
func TestRemindersAreNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	in := input(wire.ModeJob, policy(llm("a"), day, ""))
	in.Timing.ContinueAfter = 1
	w.SetCurrentHistoryLength(0)
	w.at = func(name string) {
		if name == "remind r" && w.count(name) == 3 {
			w.SetCurrentHistoryLength(10)
		}
	}
	in = w.continued(w.run(in))
	require.Equal(t, 3, in.Carry.Invocation.Reminders[0].Sent)

	next := w.resume() // which does nothing but wait and remind
	next.SetCurrentHistoryLength(10)
	in = next.continued(next.run(in))
	require.Equal(t, 4, in.Carry.Invocation.Reminders[0].Sent)
}

func interrupting(n agent.Node) wire.SessionInput {
	in := input(wire.ModeChat, n)
	in.Plan.OnMessage = agent.MessageInterrupt
	return in
}

// twice gives the chat a second message at a time.
func (w *world) twice(at time.Duration) {
	w.inbox = []string{"in-1"}
	w.after(at, func() {
		w.mu.Lock()
		w.inbox = append(w.inbox, "in-2")
		w.mu.Unlock()
		w.message("in-2")
	})
}

// A message ends the invocation that waits, and is taken next.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", w.Now().Add(365*day))
	w.twice(time.Hour)
	w.after(2*time.Hour, func() {
		w.resolve("r", wire.OutcomeGranted) // too late
		require.Equal(t, wire.StateIdle, w.status().State)
		w.cancel("")
	})
	w.ends(interrupting(llm("a")))
	require.Equal(t, []string{
		"take", "model a", "tool t", "mirror waiting_credential", "queued", "finish superseded", "take", "model a", "finish done", "finish cancelled",
	}, w.seen())
	require.JSONEq(t, `{"invocation":"inv-in-1"}`, w.input("queued", 1))
}

// While anything runs the message waits; a toolset's login is interrupted as a call's.
func TestInterruptWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lists["m"] = func(int, wire.ListInput) wire.ListResult { return wire.ListResult{Asked: wire.Asked{Request: "r"}} }
	w.turns["b"] = [][]string{{"slow"}}
	w.inbox = []string{"in-1", "in-2"}
	w.tools["slow"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		w.message("in-2")
		require.Zero(t, w.count("queued"))
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	w.at = func(name string) {
		if name == "take" && w.count("take") == 2 {
			w.lists["m"] = nil
		}
		if name == "finish done" {
			w.cancel("")
		}
	}
	w.ends(interrupting(parallel(llm("a", "m"), llm("b"))))
	require.Equal(t, wire.EndSuperseded, w.finishes[0].End)
	require.Equal(t, 3, w.count("model b"), "the one beside it came to its end")
	require.Equal(t, wire.EndDone, w.finishes[1].End)
}

// The store decides: an answer given before the message is acted on, and a message that is no more in the inbox is none.
func TestInterruptAsksTheStore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		queued func(n int) wire.QueuedResult
		asks   int
		ends   []string
	}{
		"an answer is on its way": {func(n int) wire.QueuedResult { return wire.QueuedResult{Message: true, Answer: n < 4} }, 4, []string{wire.EndSuperseded, wire.EndDone}},
		"it comes":                {func(int) wire.QueuedResult { return wire.QueuedResult{Message: true, Answer: true} }, 6, []string{wire.EndDone, wire.EndDone}},
		"the message is gone":     {func(int) wire.QueuedResult { return wire.QueuedResult{} }, 1, []string{wire.EndDone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t"}}
			w.tools["t"] = asks("r", never)
			w.queued = tc.queued
			w.twice(time.Hour)
			w.after(time.Hour+55*time.Second, func() { w.resolve("r", wire.OutcomeGranted) })
			w.after(2*time.Hour, func() { w.cancel("") })
			w.ends(interrupting(llm("a")))
			require.Equal(t, tc.asks, w.count("queued"))
			var ends []string
			for _, f := range w.finishes {
				ends = append(ends, f.End)
			}
			require.Equal(t, append(tc.ends, wire.EndCancelled), ends)
		})
	}
}

// Nothing interrupts a job, nor an agent whose definition queues; and a reset or redelivery announces a message again.
func TestMessagesQueue(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]wire.SessionInput{"job": interrupting(llm("a")), "queue": input(wire.ModeChat, llm("a"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "job" {
				in.Mode = wire.ModeJob
			}
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t"}}
			w.tools["t"] = asks("r", never)
			w.twice(time.Hour)
			w.after(day, func() { w.resolve("r", wire.OutcomeGranted) })
			w.after(2*day, func() { w.cancel("") })
			w.ends(in)
			require.Equal(t, wire.EndDone, w.finishes[0].End)
			require.Zero(t, w.count("queued"))
		})
	}
}

// A message that came as the run ended interrupts in the next one.
func TestInterruptAfterContinuing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	w.after(time.Hour, w.again)
	in := w.continued(w.run(interrupting(llm("a"))))
	in.Carry.Pending = []string{"in-2"}
	next := w.resume()
	next.inbox = []string{"in-2"}
	next.after(time.Hour, func() { next.cancel("") })
	next.ends(in)
	require.Equal(t, wire.EndSuperseded, next.finishes[0].End)
	require.Equal(t, "inv-in-1", next.finishes[0].Invocation)
	require.Equal(t, "inv-in-2", next.finishes[1].Invocation)
}

// Who cancels is told so, also where a policy ends the invocation a moment later.
func TestCancelBeatsPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", w.Now().Add(time.Hour))
	w.inbox = []string{"in-1", "in-2"}
	w.after(time.Hour-time.Second, func() { w.cancel("inv-in-1"); w.message("in-2") })
	w.after(day, func() { w.cancel("") })
	w.ends(interrupting(policy(llm("a"), 0, agent.DeadlineFail)))
	require.Equal(t, wire.EndCancelled, w.finishes[0].End)
}

// Behind an agent that serves as a tool the policies are its own, and limits and messages count for the whole tree.
func TestPoliciesBehindATool(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deadline time.Duration
		limits   agent.Limits
		message  time.Duration
		want     string
		remind   int
	}{
		"deadline":  {deadline: 3 * day, want: wire.EndFailed, remind: 2},
		"limit":     {limits: agent.Limits{ModelCalls: 1}, want: wire.EndLimit},
		"interrupt": {message: day + time.Hour, want: wire.EndSuperseded, remind: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"], w.turns["b"] = [][]string{{"agent b"}}, [][]string{{"t"}}
			deadline := never
			if tc.deadline > 0 {
				deadline = w.Now().Add(tc.deadline)
			}
			w.tools["t"] = asks("r", deadline)
			if tc.message > 0 {
				w.twice(tc.message)
			}
			w.after(10*day, func() { w.cancel("") })
			root := llm("a")
			root.AgentTools = []agent.Node{policy(llm("b"), day, agent.DeadlineFail)}
			in := interrupting(root)
			in.Plan.Limits = tc.limits
			w.ends(in)
			require.Equal(t, tc.want, w.finishes[0].End)
			require.Equal(t, tc.remind, w.count("remind r"))
		})
	}
}
