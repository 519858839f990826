package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
	"tarry/workflows"
)

func custom(name string, children ...agent.Node) agent.Node {
	return agent.Node{Name: name, Kind: agent.KindCustom, Custom: name, Children: children}
}

// story uses everything that a custom agent can do, in loops.
func story(a *workflows.Agent) error {
	if v := a.Version("tone", -1, 1); v != 1 {
		return fmt.Errorf("version %d", v)
	}
	start := a.Now()
	if err := a.Loop("rounds", func(i int) (bool, error) {
		if _, err := a.Run("writer"); err != nil {
			return false, err
		}
		if err := a.Loop("revisions", func(j int) (bool, error) {
			_, err := a.Parallel("critic", "reviser")
			return j == 1, err
		}); err != nil {
			return false, err
		}
		var done int
		if _, err := a.State("done", &done); err != nil {
			return false, err
		}
		var read struct{ Result string }
		if err := a.Call("t", map[string]any{"i": i}, &read); err != nil {
			return false, err
		}
		if err := a.Sleep(time.Hour); err != nil {
			return false, err
		}
		return i == 1, a.Emit(workflows.Emission{Text: read.Result})
	}); err != nil {
		return err
	}
	if passed := a.Now().Sub(start); passed < 2*time.Hour {
		return fmt.Errorf("only %s have passed", passed)
	}
	_, err := a.Run("writer")
	return err
}

func storyWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.custom["story"] = story
	w.tools["t"] = asks("r", never)
	w.read = func(in wire.ReadInput) wire.ReadResult {
		if in.Key != "" {
			return wire.ReadResult{}
		}
		return wire.ReadResult{Value: json.RawMessage(`{"result":"read"}`)}
	}
	return w
}

func storyPlan() agent.Node { return custom("story", llm("writer"), llm("critic"), llm("reviser")) }

// chain runs a session to its end, whatever it takes, and counts the runs. What a run asks is answered after a while.
func chain(t *testing.T, w *world, in wire.SessionInput, prepare func(w *world, run int)) (runs int) {
	t.Helper()
	now := w.Now()
	for {
		runs++
		require.Less(t, runs, 100)
		w.SetStartTime(now)
		prepare(w, runs)
		err := w.run(in)
		now = w.Now()
		if err == nil {
			return runs
		}
		in = w.continued(err)
		before := w.seen()
		w = w.resume()
		w.names = before
		w.inputs = make([]string, len(before))
	}
}

// A custom agent goes on where it was, whenever its run continues as another: nothing is done twice, nothing is left out.
func TestCustomAgentContinues(t *testing.T) {
	t.Parallel()
	answer := func(w *world) {
		for at := 30 * time.Minute; at < 10*time.Hour; at += time.Hour {
			w.after(at, func() { w.resolve("r", wire.OutcomeGranted) })
		}
	}
	whole := storyWorld(t)
	chain(t, whole, input(wire.ModeJob, storyPlan()), func(w *world, _ int) { answer(w); whole = w })
	names, want := whole.seen(), done(whole.seen())
	require.Equal(t, 4, want["model critic"])
	for at := range len(names) - 2 { // not as the last agent answers: nothing comes after it
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := storyWorld(t)
			last := w
			runs := chain(t, w, input(wire.ModeJob, storyPlan()), func(w *world, run int) {
				last = w
				answer(w)
				if run == 1 {
					w.at = func(string) {
						if len(w.seen()) == at+1 {
							w.again()
						}
					}
				}
			})
			require.Equal(t, want, done(last.seen()))
			require.Equal(t, 2, runs)
		})
	}
}

// Where each run does a little only, the frame stays as small as it was.
func TestCustomAgentContinuesForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.custom["counter"] = func(a *workflows.Agent) error {
		return a.Loop("count", func(i int) (bool, error) {
			_, err := a.Run("writer")
			return i == 29, err
		})
	}
	last := w
	runs := chain(t, w, input(wire.ModeJob, custom("counter", llm("writer"))), func(w *world, _ int) {
		last = w
		n := len(w.seen())
		w.at = func(string) {
			if len(w.seen()) == n+3 {
				w.again()
			}
		}
	})
	require.Greater(t, runs, 8)
	require.Equal(t, 30, last.count("model writer"))
}

// A journal that is too long to be carried is stored, and read again in pieces.
func TestLongJournal(t *testing.T) {
	t.Parallel()
	const steps = 300
	w := newWorld(t)
	w.custom["reader"] = func(a *workflows.Agent) error {
		for i := range steps {
			var text string
			if _, err := a.State(fmt.Sprint("key", i), &text); err != nil || len(text) != 1000 {
				return fmt.Errorf("step %d: %d bytes: %w", i, len(text), err)
			}
			if i%100 == 99 {
				if _, err := a.Run("writer"); err != nil {
					return err
				}
			}
		}
		return nil
	}
	w.read = func(wire.ReadInput) wire.ReadResult {
		return wire.ReadResult{Value: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)}
	}
	last := w
	runs := chain(t, w, input(wire.ModeJob, custom("reader", llm("writer"))), func(w *world, _ int) {
		last = w
		w.at = func(name string) {
			if name == "model writer" {
				w.again()
			}
		}
	})
	require.Equal(t, 3, runs, "after the last one nothing comes")
	require.Equal(t, steps, last.count("read"))
	require.Equal(t, 3, last.count("model writer"))
	require.Equal(t, 2, last.count("keep"))
	require.Greater(t, last.count("kept"), 2+4, "in parts")
	for _, body := range w.kept {
		require.Greater(t, len(body), 100*1000)
	}
}

func TestCustomAgentErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flow workflows.AgentFunc
		says []string
	}{
		"own error": {flow: func(*workflows.Agent) error { return errors.New("no") }, says: []string{"take", "finish failed"}},
		"tool error": {flow: func(a *workflows.Agent) error {
			var refused *workflows.ToolError
			if err := a.Call("bad", nil, nil); !errors.As(err, &refused) || refused.Message != "broken" || refused.Tool != "bad" {
				return err
			}
			_, err := a.Run("writer")
			return err
		}, says: []string{"take", "open bad", "tool bad", "read", "model writer", "finish done"}},
		"too large": {flow: func(a *workflows.Agent) error {
			var large *workflows.TooLargeError
			_, err := a.State("large", new(string))
			if !errors.As(err, &large) || large.Size != 1<<20 {
				return errors.New("not too large")
			}
			return nil
		}, says: []string{"take", "read", "finish done"}},
		"limit that is swallowed": {flow: func(a *workflows.Agent) error {
			for range 10 {
				_, _ = a.Run("writer")
			}
			return nil
		}, says: []string{"take", "model writer", "model writer", "finish limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.custom["flow"] = tt.flow
			w.read = func(in wire.ReadInput) wire.ReadResult {
				if in.Key == "large" {
					return wire.ReadResult{TooLarge: 1 << 20}
				}
				return wire.ReadResult{Value: json.RawMessage(`{"error":"broken"}`)}
			}
			in := input(wire.ModeJob, custom("flow", llm("writer")))
			in.Plan.Limits.ModelCalls = 2
			w.ends(in)
			require.Equal(t, tt.says, w.seen())
		})
	}
}

// A function that changed under a run stops it, rather than doing something else than it had decided; so does one that is not
// there. Another worker can go on.
func TestCustomAgentThatDoesNotFit(t *testing.T) {
	t.Parallel()
	carry := &wire.Carry{Heads: []string{"e"}, Invocation: &wire.Invocation{ID: "i", Frame: wire.Frame{Journal: []wire.Step{{Op: "run writer"}}}}}
	for name, tt := range map[string]struct {
		agents workflows.Agents
		says   string
	}{
		"changed": {workflows.Agents{"flow": func(a *workflows.Agent) error { return a.Sleep(1) }}, `step 1 of custom agent flow was "run writer" and is "sleep" now`},
		"missing": {workflows.Agents{"other": story}, "custom agent flow is not registered with this worker; there are [other]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for name, f := range tt.agents {
				w.custom[name] = f
			}
			in := input(wire.ModeJob, custom("flow", llm("writer")))
			in.Carry = carry
			require.ErrorContains(t, w.run(in), tt.says) // the test environment takes a panic for the end
		})
	}
}

// What a tool has answered may repeat what a person did: it is in no log, also where the function makes its own error of it.
func TestCustomAgentFailsQuietly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.custom["flow"] = func(a *workflows.Agent) error {
		return fmt.Errorf("book a room: %w", a.Call("bad", nil, nil))
	}
	w.read = func(wire.ReadInput) wire.ReadResult {
		return wire.ReadResult{Value: json.RawMessage(`{"error":"no room for \"canary\""}`)}
	}
	w.ends(input(wire.ModeJob, custom("flow")))
	require.Contains(t, w.logged.String(), "custom agent failed")
	require.Contains(t, w.logged.String(), "book a room: tool bad")
	require.NotContains(t, w.logged.String(), "canary")
}
