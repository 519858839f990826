package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"tarry/wire"
)

// A chat has no end: a message that comes days after the last one is answered (pitfall T22).
func TestChatIsAnsweredDaysLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.after(72*time.Hour, func() { w.inbox = append(w.inbox, "in-2"); w.message("in-2") })
	w.after(1000*24*time.Hour, func() { w.inbox = append(w.inbox, "in-3"); w.message("in-3") })
	w.after(1001*24*time.Hour, func() { w.cancel("") })
	w.ends(input(wire.ModeChat, llm("a")))
	require.Equal(t, []string{
		"take", "model a", "finish done", "take", "model a", "finish done", "take", "model a", "finish done", "finish cancelled",
	}, w.seen())
}

// Messages are processed one at a time, in order (pitfall T26), also when one comes while something waits, and each once
// however often it is announced.
func TestChatIsFIFO(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inbox = nil
	w.turns["a"] = [][]string{{"t"}}
	w.tools["t"] = asks("r", never)
	for i := range 20 {
		id := fmt.Sprintf("in-%d", i+1)
		w.inbox = append(w.inbox, id)
		w.after(time.Minute, func() { w.message(id); w.message(id) })
	}
	w.after(time.Hour, func() {
		require.Equal(t, 1, w.count("take"), "the others are queued while the first waits")
		w.resolve("r", wire.OutcomeGranted)
	})
	w.after(48*time.Hour, func() {
		require.Equal(t, wire.Status{State: wire.StateIdle, Runs: 1}, w.status())
		w.message("in-7")
		w.cancel("")
	})
	w.ends(input(wire.ModeChat, llm("a")))
	require.Len(t, w.finishes, 21)
	for i, f := range w.finishes[:20] {
		require.Equal(t, fmt.Sprintf("inv-in-%d", i+1), f.Invocation)
		require.False(t, f.Closed)
	}
	require.True(t, w.finishes[20].Closed, "the idle session is closed when it is cancelled")
	require.Equal(t, 20, w.count("take"))
	require.JSONEq(t, `{"heads":["ev-a-3","ev-finish"]}`, w.input("take", 2))
}

// A message announced while Take finds nothing for an older announcement is not forgotten.
func TestAnnouncedDuringTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inbox = nil
	w.RegisterActivityWithOptions(func(_ context.Context, in wire.TakeInput) (wire.TakeResult, error) {
		if w.note("take", in) == 1 {
			w.message("in-2")
			w.mu.Lock()
			w.inbox = append(w.inbox, "in-2")
			w.mu.Unlock()
			return wire.TakeResult{}, nil
		}
		return wire.TakeResult{Inbox: "in-2", Invocation: "inv-in-2", Event: "e"}, nil
	}, activity.RegisterOptions{Name: wire.ActivityTake, DisableAlreadyRegisteredCheck: true})
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, []string{"take", "take", "model a", "finish done"}, w.seen())
}

// A job ends although signals are unread; they are read, so that the server accepts the end.
func TestJobEndsWithUnreadSignals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at = func(name string) {
		if name == "finish done" {
			w.message("in-2")
			w.resolve("x", wire.OutcomeGranted)
			w.cancel("other")
		}
	}
	w.ends(input(wire.ModeJob, llm("a")))
	require.Equal(t, []string{"take", "model a", "finish done"}, w.seen())
}

func TestSearchAttributesOnlyIfTold(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		t.Run(fmt.Sprint(told), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.turns["a"] = [][]string{{"t"}}
			w.tools["t"] = asks("r", never)
			w.after(time.Hour, func() { w.resolve("r", wire.OutcomeGranted) })
			var set []string
			w.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				a, _ := args.Get(0).(temporal.SearchAttributes)
				v, _ := a.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus))
				set = append(set, v)
			}).Return(nil).Maybe()
			in := input(wire.ModeJob, llm("a"))
			in.SearchAttributes = told
			w.ends(in)
			if told {
				require.Equal(t, []string{"running", "waiting_credential", "running", "idle"}, set)
			} else {
				require.Empty(t, set)
			}
		})
	}
}
