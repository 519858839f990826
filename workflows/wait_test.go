package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

var never time.Time

// One call needs a login (pitfalls P1, P30, T15, T17, T19, T21): what each way out of the wait does, and that nothing but
// the wait is there meanwhile.
func TestWait(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	granted := []string{"take", "model a", "tool t", "mirror waiting_credential", "tool t", "model a", "finish done"}
	settled := func(reason string) []string {
		return []string{"take", "model a", "tool t", "mirror waiting_credential", "settle " + reason, "model a", "finish done"}
	}
	for name, tc := range map[string]struct {
		deadline time.Duration
		closes   wire.Outcome
		arrange  func(w *world)
		want     []string
		denied   bool
	}{
		"granted": {arrange: func(w *world) {
			w.after(30*day, func() { w.resolve("r", wire.OutcomeGranted) })
		}, want: granted},
		"denied": {arrange: func(w *world) {
			w.after(day, func() { w.resolve("r", wire.OutcomeDenied) })
		}, want: settled(wire.ReasonDenied), denied: true},
		"expired by the server": {arrange: func(w *world) {
			w.after(day, func() { w.resolve("r", wire.OutcomeExpired) })
		}, want: settled(wire.ReasonExpired), denied: true},
		"a duplicate is ignored": {arrange: func(w *world) {
			w.after(day, func() {
				w.resolve("r", wire.OutcomeGranted)
				w.resolve("r", wire.OutcomeDenied)
				w.resolve("r", wire.OutcomeGranted)
			})
		}, want: granted},
		"another request is ignored": {arrange: func(w *world) {
			w.after(time.Hour, func() { w.resolve("other", wire.OutcomeGranted); w.resolve("", wire.OutcomeGranted) })
			w.after(2*time.Hour, func() {
				require.Equal(w.t, wire.StateWaitingCredential, w.status().State)
				require.Equal(w.t, []string{"r"}, w.status().Requests)
				w.resolve("r", wire.OutcomeGranted)
			})
		}, want: granted},
		"the signal comes before the wait": {arrange: func(w *world) {
			w.after(0, func() { w.resolve("r", wire.OutcomeGranted) })
		}, want: []string{"take", "model a", "tool t", "tool t", "model a", "finish done"}},
		"the deadline passes": {deadline: day, want: []string{
			"take", "model a", "tool t", "mirror waiting_credential", "close", "settle expired", "model a", "finish done",
		}, denied: true},
		"granted before the deadline": {deadline: day, arrange: func(w *world) {
			w.after(time.Hour, func() { w.resolve("r", wire.OutcomeGranted) })
		}, want: granted},
		"the deadline fires while the row says granted": {deadline: day, closes: wire.OutcomeGranted, arrange: func(w *world) {
			w.after(day+time.Second, func() { w.resolve("r", wire.OutcomeGranted) })
		}, want: []string{"take", "model a", "tool t", "mirror waiting_credential", "close", "tool t", "model a", "finish done"}},
		"the deadline fires while the row says denied": {deadline: day, closes: wire.OutcomeDenied, want: []string{
			"take", "model a", "tool t", "mirror waiting_credential", "close", "settle denied", "model a", "finish done",
		}, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t"}}
			deadline := never
			if tc.deadline > 0 {
				deadline = w.Now().Add(tc.deadline)
			}
			w.tools["t"] = asks("r", deadline)
			if tc.closes != "" {
				w.close = func(wire.CloseInput) wire.CloseResult { return wire.CloseResult{Outcome: tc.closes} }
			}
			if tc.arrange != nil {
				tc.arrange(w)
			}
			w.ends(input(wire.ModeJob, llm("a")))
			require.Equal(t, tc.want, w.seen())
			require.Equal(t, tc.denied, w.finishes[0].Denied)
			if tc.want[len(tc.want)-3] == "tool t" {
				require.JSONEq(t, `{"call":"call-2","answered":"r"}`, w.input("tool t", 2), "the call id stays")
			}
		})
	}
}

func TestWaitAsksAgainAndGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = func(_ context.Context, n int, _ wire.ToolInput) wire.ToolResult {
		r := []string{"r1", "r2", "r3", "r4"}[n-1]
		w.resolve(r, wire.OutcomeGranted)
		return wire.ToolResult{Asked: wire.Asked{Request: r}}
	}
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 4, w.count("tool t"))
	require.JSONEq(t, `{"call":"call-2","request":"r4","reason":"refused"}`, w.input("settle refused", 1))
}

// A toolset's listing waits like a call (pitfall P16). Denied, the model goes on without its tools, in this invocation and
// for every agent of it.
func TestToolsetWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcome wire.Outcome
		model   string
		seen    []string
	}{
		"granted": {wire.OutcomeGranted, `{"agent":"a","heads":["ask"],"lists":["list"]}`, []string{
			"take", "list m", "mirror waiting_credential", "list m", "model a", "model b", "finish done",
		}},
		"denied": {wire.OutcomeDenied, `{"agent":"a","heads":["ask"]}`, []string{
			"take", "list m", "mirror waiting_credential", "settle denied", "model a", "model b", "finish done",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.lists["m"] = func(_ int, in wire.ListInput) wire.ListResult {
				if in.Answered == "r" {
					return wire.ListResult{List: "list"}
				}
				return wire.ListResult{Asked: wire.Asked{Request: "r", Asking: "ask"}}
			}
			w.after(time.Hour, func() { w.resolve("r", tc.outcome) })
			w.ends(input(wire.ModeJob, sequence(llm("a", "m"), llm("b", "m"))))
			require.Equal(t, tc.seen, w.seen())
			require.JSONEq(t, tc.model, w.input("model a", 1))
			require.Equal(t, tc.outcome != wire.OutcomeGranted, w.finishes[0].Denied)
		})
	}
}

// A listing that was coalesced into a request of before names no asking event: the heads must not go back to it.
func TestCoalescedListingKeepsHeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lists["m"] = func(_ int, in wire.ListInput) wire.ListResult {
		if in.Answered != "" {
			return wire.ListResult{List: "list"}
		}
		return wire.ListResult{Asked: wire.Asked{Request: "r"}}
	}
	w.after(time.Hour, func() { w.resolve("r", wire.OutcomeGranted) })
	w.ends(input(wire.ModeJob, llm("a", "m")))
	require.JSONEq(t, `{"agent":"a","heads":["ev-in-1"],"lists":["list"]}`, w.input("model a", 1))
}

// Calls A (free), B and C (need a login each): A's result is there while B and C wait, B runs when B is granted, and the
// model is asked once after all of them, in call order (pitfall P8).
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"free", "b", "c"}}
	w.tools["b"], w.tools["c"] = asks("rb", never), asks("rc", never)
	waiting := func(requests ...string) {
		s := w.status()
		require.Equal(t, wire.StateWaitingCredential, s.State)
		require.Equal(t, requests, s.Requests)
		require.Equal(t, 1, s.ModelCalls)
	}
	w.after(time.Hour, func() {
		waiting("rb", "rc")
		require.Equal(t, 1, w.count("tool free"))
		w.resolve("rc", wire.OutcomeGranted)
	})
	w.after(2*time.Hour, func() {
		waiting("rb")
		require.Equal(t, 2, w.count("tool c"))
		require.Equal(t, 1, w.count("tool b"))
		w.resolve("rb", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 1, w.count("tool free"))
	require.Equal(t, 2, w.count("tool b"))
	require.Equal(t, 2, w.count("model a"))
	require.Equal(t, 2, w.count("mirror waiting_credential"), "once when all wait, once when all that is left waits again")
	require.JSONEq(t, `{"agent":"a","heads":["re-call-2","re-call-3","re-call-4"]}`, w.input("model a", 2))
}

// A call that still runs means that the run does not wait yet.
func TestMirrorOnlyWhenAllWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"b", "slow"}}
	w.tools["b"] = asks("rb", never)
	asked := make(chan struct{})
	w.tools["slow"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		<-asked
		require.Zero(t, w.count("mirror waiting_credential"))
		return wire.ToolResult{Event: "re-" + in.Call}
	}
	w.SetOnActivityCompletedListener(onTool("b", sync.OnceFunc(func() { close(asked) })))
	w.after(time.Hour, func() { w.resolve("rb", wire.OutcomeGranted) })
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 1, w.count("mirror waiting_credential"))
}

// Two calls that need one login wait for one request (pitfall P9).
func TestCoalescedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"b", "c"}}
	w.tools["b"], w.tools["c"] = asks("r", never), asks("r", never)
	w.after(time.Hour, func() {
		require.Equal(t, []string{"r"}, w.status().Requests)
		w.resolve("r", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 2, w.count("tool b"))
	require.Equal(t, 2, w.count("tool c"))
	require.Equal(t, 1, w.count("mirror waiting_credential"))
}

// A login that was refused in this invocation is not asked for again: the activity answers the call itself.
func TestDeniedIsSticky(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}, {"t"}}
	w.tools["t"] = func(_ context.Context, n int, in wire.ToolInput) wire.ToolResult {
		if n == 1 {
			return wire.ToolResult{Asked: wire.Asked{Request: "r"}}
		}
		return wire.ToolResult{Event: "re-" + in.Call, Asked: wire.Asked{Denied: true}}
	}
	w.after(time.Hour, func() { w.resolve("r", wire.OutcomeDenied) })
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 1, w.count("mirror waiting_credential"))
	require.Equal(t, 2, w.count("tool t"))
	require.Equal(t, 3, w.count("model a"))
}

// asksInput wants input n times before it answers.
func asksInput(n int) tool {
	return func(_ context.Context, try int, in wire.ToolInput) wire.ToolResult {
		if try > n {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		request := fmt.Sprintf("i%d", try)
		return wire.ToolResult{Asked: wire.Asked{Request: request, Asking: "ask-" + request, Input: true}}
	}
}

// What a server wants besides a login is waited for in the same way, under a state of its own, and may take several steps.
func TestWaitForInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		steps, tries int
		gaveUp       int
	}{"steps": {4, 5, 0}, "without end": {100, 11, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"b"}}
			w.tools["b"] = asksInput(tc.steps)
			for i := range tc.tries - 1 {
				w.after(time.Duration(i+1)*time.Hour, func() {
					s := w.status()
					require.Equal(t, wire.StateWaitingInput, s.State)
					w.resolve(s.Requests[0], wire.OutcomeGranted)
				})
			}
			w.ends(input(wire.ModeJob, llm("a")))
			require.Equal(t, tc.tries, w.count("tool b"))
			require.Equal(t, tc.gaveUp, w.count("settle refused"))
			require.Equal(t, tc.tries-1, w.count("mirror waiting_input"))
			require.Zero(t, w.count("mirror waiting_credential"))
		})
	}
}

// A run that waits for a login too shows that.
func TestInputAndLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"b", "c"}}
	w.tools["b"], w.tools["c"] = asksInput(1), asks("rc", never)
	w.after(time.Hour, func() {
		require.Equal(t, wire.StateWaitingCredential, w.status().State)
		w.resolve("rc", wire.OutcomeGranted)
	})
	w.after(2*time.Hour, func() {
		require.Equal(t, wire.StateWaitingInput, w.status().State)
		w.resolve("i1", wire.OutcomeDenied)
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 1, w.count("settle denied"))
}

// A call that has connected a toolset puts its listing into the next model call.
func TestConnectedToolset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"m_connect"}}
	w.tools["m_connect"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		return wire.ToolResult{Event: "re-" + in.Call, Toolset: "m", List: "list-late"}
	}
	n := llm("a")
	n.Toolsets = []string{"m"}
	w.ends(input(wire.ModeJob, n))
	require.Contains(t, w.input("model a", 1), `"lists":["list-m"]`)
	require.Contains(t, w.input("model a", 2), `"lists":["list-late"]`)
	require.Equal(t, 1, w.count("list m"))
}

// An approval is waited for like a login, and a login beside it is what is shown. One call may ask several times.
func TestWaitForConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"b", "c", "d"}}
	w.tools["b"], w.tools["c"] = asksInput(1), asks("rc", never)
	w.tools["d"] = func(_ context.Context, try int, in wire.ToolInput) wire.ToolResult {
		if try > 2 {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		request := fmt.Sprintf("rd%d", try)
		return wire.ToolResult{Asked: wire.Asked{Request: request, Asking: "ask-" + request, Confirmation: true}}
	}
	w.after(time.Hour, func() {
		require.Equal(w.t, wire.StateWaitingCredential, w.status().State)
		w.resolve("rc", wire.OutcomeGranted)
	})
	w.after(2*time.Hour, func() {
		require.Equal(w.t, wire.StateWaitingConfirmation, w.status().State)
		w.resolve("rd1", wire.OutcomeGranted)
	})
	w.after(3*time.Hour, func() {
		require.Equal(w.t, []string{"i1", "rd2"}, w.status().Requests)
		w.resolve("rd2", wire.OutcomeGranted)
	})
	w.after(4*time.Hour, func() {
		require.Equal(w.t, wire.StateWaitingInput, w.status().State)
		w.resolve("i1", wire.OutcomeGranted)
	})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, 3, w.count("tool d"))
	require.Equal(t, 2, w.count("mirror waiting_confirmation"))
}

// A grant that is announced and not there (a forged signal, or a row that was put back) is looked into, and waited for again, as
// often as it is announced; nobody counts that as another question.
func TestFalseGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turns["a"] = [][]string{{"t"}}
	granted := false
	w.tools["t"] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		if granted {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		return wire.ToolResult{Asked: wire.Asked{Request: "r", Asking: "ask-r"}}
	}
	for i := range 6 {
		w.after(time.Duration(i+1)*time.Hour, func() {
			require.Equal(t, []string{"r"}, w.status().Requests)
			granted = i == 5
			w.resolve("r", wire.OutcomeGranted)
			w.resolve("r", wire.OutcomeGranted)
		})
	}
	w.ends(input(wire.ModeJob, llm("a")))
	require.GreaterOrEqual(t, w.count("tool t"), 7)
	require.Zero(t, w.count("settle refused"))
	require.Equal(t, 2, w.count("model a"))
}

func TestFalseGrantsOfAListing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	granted := false
	w.lists["m"] = func(int, wire.ListInput) wire.ListResult {
		if granted {
			return wire.ListResult{List: "list-m"}
		}
		return wire.ListResult{Asked: wire.Asked{Request: "r"}}
	}
	for i := range 6 {
		w.after(time.Duration(i+1)*time.Hour, func() {
			granted = i == 5
			w.resolve("r", wire.OutcomeGranted)
		})
	}
	w.ends(input(wire.ModeJob, llm("a", "m")))
	require.Equal(t, 7, w.count("list m"))
	require.Contains(t, w.input("model a", 1), `"lists":["list-m"]`)
}
