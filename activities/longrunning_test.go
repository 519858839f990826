package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

func long(t *testing.T, runs *atomic.Int32, response any, opts ...function.Option) tools.Tool {
	t.Helper()
	return tool(t, "t", func(context.Context, map[string]any) (any, error) { runs.Add(1); return response, nil }, append(opts, function.LongRunning())...)
}

func (w *world) complete(call string, response map[string]any) {
	w.t.Helper()
	_, err := w.inputs.Complete(w.t.Context(), everybody, call, response)
	require.NoError(w.t, err)
}

func (w *world) partly(call string, response map[string]any) {
	w.t.Helper()
	_, err := w.inputs.Interim(w.t.Context(), everybody, call, response)
	require.NoError(w.t, err)
}

// the view of a model's next call.
func (w *world) sees(heads ...string) []string {
	w.t.Helper()
	var out []string
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		out = nil
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					body, err := json.Marshal(p.FunctionResponse)
					require.NoError(w.t, err)
					out = append(out, string(body))
				}
			}
		}
		return answering("Done."), nil
	}
	must[wire.ModelResult](w, wire.ActivityCallModel, "after", wire.ModelInput{Agent: w.agent(), Heads: heads})
	return out
}

func interims(w *world) (out []*session.Record) {
	for _, e := range w.events() {
		if e.Kind == session.KindInterim {
			out = append(out, e)
		}
	}
	return out
}

// A long-running tool runs once, whatever attempt dies where after it has returned. What it returns and what comes before the
// end is shown; the model sees the last result alone.
func TestLongRunningCall(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "ask.after"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			w := newWorld(t, llm("a", functions("t")...), long(t, &runs, map[string]any{"status": "pending", "ticket": 7}))
			made := w.calls("t")
			call := made.Calls[0]
			require.Equal(t, []string{call.ID}, w.event(made.Event).LongRunningToolIDs)
			w.crash(point)
			out := w.tool(call, "t1", "")
			require.Equal(t, call.ID, out.Request, "clients answer with the call's id")
			require.True(t, out.Input)
			require.Empty(t, out.Event)
			require.Equal(t, out.Request, w.tool(call, "t2", "").Request, "as after a reset")
			shown := interims(w)
			require.Len(t, shown, 1)
			require.Equal(t, "a", shown[0].Author)
			response := shown[0].Responses()[0]
			require.Equal(t, call.ID, response.ID)
			require.Equal(t, "t", response.Name)
			require.Equal(t, map[string]any{"status": "pending", "ticket": 7.0}, response.Response)
			require.True(t, *response.WillContinue)

			w.partly(call.ID, map[string]any{"status": "half"})
			w.partly(call.ID, map[string]any{"status": "half"}) // sent twice
			require.Len(t, interims(w), 2)
			require.Equal(t, out.Request, w.tool(call, "t3", "").Request)
			w.complete(call.ID, map[string]any{"status": "done"})
			_, err := w.inputs.Complete(t.Context(), everybody, call.ID, map[string]any{"status": "other"})
			require.ErrorIs(t, err, auth.ErrClosed)
			_, err = w.inputs.Interim(t.Context(), everybody, call.ID, map[string]any{"status": "late"})
			require.ErrorIs(t, err, auth.ErrClosed)
			done := w.tool(call, "t4", call.ID)
			require.Equal(t, map[string]any{"status": "done"}, w.response(done.Event))
			require.Equal(t, done, w.tool(call, "t5", ""), "as after a reset")
			require.EqualValues(t, 1, runs.Load())
			seen := w.sees(done.Event)
			require.Len(t, seen, 1, "interim results are no answers")
			require.JSONEq(t, `{"id":"`+call.ID+`","name":"t","response":{"status":"done"}}`, seen[0])
			require.Len(t, interims(w), 2)
		})
	}
}

// Its tool may return nothing: then nothing is shown, and the call waits all the same.
func TestNothingToShowYet(t *testing.T) {
	t.Parallel()
	for name, returned := range map[string]any{"nil": nil, "empty": map[string]any{}, "no text": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			w := newWorld(t, llm("a", functions("t")...), long(t, &runs, returned))
			made := w.calls("t", "t")
			for i, call := range made.Calls {
				out := w.tool(call, "t"+call.ID, "")
				require.Equal(t, call.ID, out.Request)
				require.Equal(t, made.Event, out.Asking)
				require.EqualValues(t, i+1, runs.Load())
			}
			require.Empty(t, interims(w))
			first, second := made.Calls[0], made.Calls[1]
			w.partly(second.ID, map[string]any{"n": 1})
			w.complete(second.ID, map[string]any{"n": 2})
			two := w.tool(second, "d2", second.ID)
			w.complete(first.ID, map[string]any{})
			one := w.tool(first, "d1", first.ID)
			require.Len(t, w.sees(one.Event, two.Event), 2)
			require.EqualValues(t, 2, runs.Load())
			timeline, err := w.store.Timeline(t.Context(), w.row.Owner, w.row.ID, 0)
			require.NoError(t, err)
			require.Len(t, timeline, len(w.events()), "everything is in the session")
		})
	}
}

// The definition alone may say that a tool is long-running (ADK's LongRunningFunctionTool). One that fails has its result.
func TestLongRunningByDefinition(t *testing.T) {
	t.Parallel()
	root := llm("a", functions("t", "other")...)
	root.Tools[0].LongRunning = true
	fails := false
	plain := func(name string) tools.Tool {
		return tool(t, name, func(context.Context, map[string]any) (string, error) {
			if fails {
				return "", tools.Errorf("no ticket could be opened")
			}
			return "waiting", nil
		})
	}
	w := newWorld(t, root, plain("t"), plain("other"))
	made := w.calls("t", "other", "t")
	require.Equal(t, []string{made.Calls[0].ID, made.Calls[2].ID}, w.event(made.Event).LongRunningToolIDs)
	require.Equal(t, made.Calls[0].ID, w.tool(made.Calls[0], "t1", "").Request)
	require.Equal(t, map[string]any{"result": "waiting"}, w.response(w.tool(made.Calls[1], "t2", "").Event))
	fails = true
	require.Equal(t, map[string]any{"error": "no ticket could be opened"}, w.response(w.tool(made.Calls[2], "t3", "").Event))
}

// Given up, expired or cancelled, the model hears that nothing is known.
func TestResultThatNeverComes(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{wire.ReasonDenied: "ended without a result", wire.ReasonExpired: "before the deadline", wire.ReasonCancelled: "cancelled by the person"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			w := newWorld(t, llm("a", functions("t")...), long(t, &runs, nil))
			calls := w.calls("t", "t").Calls // the other one waits at the same event
			w.tool(calls[1], "t2", "")
			call := calls[0]
			out := w.tool(call, "t1", "")
			if reason == wire.ReasonDenied {
				_, err := w.inputs.Decline(t.Context(), everybody, call.ID)
				require.NoError(t, err)
			}
			settled := must[wire.SettleResult](w, wire.ActivitySettle, "s", wire.SettleInput{Call: call.ID, Request: out.Request, Reason: reason})
			require.Contains(t, w.response(settled.Event)["error"], want)
			if reason == wire.ReasonCancelled {
				require.True(t, settled.Closed)
				_, err := w.inputs.Complete(t.Context(), everybody, call.ID, map[string]any{"n": 1})
				require.ErrorIs(t, err, auth.ErrClosed)
			}
			require.EqualValues(t, 2, runs.Load(), "each once")
		})
	}
}

// A result is its owner's to give, of bounded size, and is kept where only this call opens it.
func TestResultsThatAreRefused(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), long(t, &runs, nil))
	call := w.calls("t").Calls[0]
	w.tool(call, "t1", "")
	nobody := func(agent.Owner) bool { return false }
	_, err := w.inputs.Complete(t.Context(), nobody, call.ID, map[string]any{})
	require.ErrorIs(t, err, oauth.ErrNotFound)
	_, err = w.inputs.Interim(t.Context(), nobody, call.ID, map[string]any{})
	require.ErrorIs(t, err, oauth.ErrNotFound)
	huge := map[string]any{"text": strings.Repeat("x", 1<<20)}
	var wrong *auth.AnswerError
	_, err = w.inputs.Complete(t.Context(), everybody, call.ID, huge)
	require.ErrorAs(t, err, &wrong)
	_, err = w.inputs.Interim(t.Context(), everybody, call.ID, huge)
	require.ErrorAs(t, err, &wrong)
	_, err = w.inputs.Reply(t.Context(), everybody, call.ID, json.RawMessage(`1`))
	require.Error(t, err, "it is no question")
	_, err = w.inputs.Confirm(t.Context(), everybody, call.ID, true, auth.Consent{})
	require.Error(t, err, "it is no approval")
	require.Empty(t, interims(w))
	w.complete(call.ID, map[string]any{"secret": "canary-secret-result"})
	body, err := json.Marshal(w.stored(call.ID))
	require.NoError(t, err)
	require.NotContains(t, string(body)+w.log.String(), "canary-secret")
	long := w.tool(call, "t2", call.ID)
	require.Equal(t, map[string]any{"secret": "canary-secret-result"}, w.response(long.Event))
}

// A long-running tool that is guarded too runs once, after its approval.
func TestGuardedLongRunningCall(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), long(t, &runs, "begun", function.RequireConfirmation()))
	call := w.calls("t").Calls[0]
	asks := w.tool(call, "t1", "")
	require.True(t, asks.Confirmation)
	_, err := w.inputs.Complete(t.Context(), everybody, call.ID, map[string]any{})
	require.ErrorIs(t, err, oauth.ErrNotFound, "it has not run")
	w.confirm(asks.Request, true, "")
	out := w.tool(call, "t2", asks.Request)
	require.Equal(t, call.ID, out.Request)
	w.complete(call.ID, map[string]any{"ok": true})
	require.Equal(t, map[string]any{"ok": true}, w.response(w.tool(call, "t3", call.ID).Event))
	require.EqualValues(t, 1, runs.Load())
}
