package activities_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

// asking is a world in which one call waits for a login, until a deadline if there is one.
func asking(t *testing.T, deadline time.Duration) (w *world, turn wire.ModelResult, out wire.ToolResult) {
	t.Helper()
	ran := 0
	a := llm("a", functions("t")...)
	a.Wait.Deadline = deadline
	w = newWorld(t, a, needing(t, "t", &ran))
	turn = w.calls("t")
	out = must[wire.ToolResult](w, wire.ToolPrefix+turn.Calls[0].Tool, "t1", wire.ToolInput{Call: turn.Calls[0].ID})
	require.NotEmpty(t, out.Request)
	return w, turn, out
}

func (w *world) timeline() []*session.Record {
	w.t.Helper()
	view, err := w.store.Timeline(w.t.Context(), w.row.Owner, w.row.ID, 0)
	require.NoError(w.t, err)
	return view
}

func (w *world) request(id string) auth.Request {
	w.t.Helper()
	r, err := w.store.RequestOf(w.t.Context(), w.row, id)
	require.NoError(w.t, err)
	return r
}

// A reminder is an event for clients: it names the request, asks nobody anew, and stands in no model's view.
func TestRemind(t *testing.T) {
	t.Parallel()
	w, turn, out := asking(t, 0)
	must[any](w, wire.ActivityRemind, "n1", wire.RemindInput{Request: out.Request, Number: 1})
	must[any](w, wire.ActivityRemind, "n2", wire.RemindInput{Request: out.Request, Number: 2})
	require.Equal(t, 2, w.request(out.Request).Reminders)
	view := w.timeline()
	last := view[len(view)-1]
	require.Equal(t, map[string]any{"request": out.Request, "number": 2.0}, last.Custom["tarry_reminder"])
	require.Equal(t, "a", last.Author)
	require.Equal(t, w.event(turn.Event).InvocationID, last.InvocationID)
	require.Empty(t, last.LongRunningToolIDs)
	require.Nil(t, last.Content)
	require.Contains(t, w.log.String(), `"msg":"still waiting for a person"`)

	w.credentials.Grant("drive", token)
	done := must[wire.ToolResult](w, wire.ToolPrefix+turn.Calls[0].Tool, "t2", wire.ToolInput{Call: turn.Calls[0].ID, Answered: out.Request})
	seen, missing := session.Ancestors(byID(w.events()), []string{done.Event})
	require.Empty(t, missing)
	for _, r := range seen {
		require.NotEqual(t, session.KindReminder, r.Kind)
	}
	require.Len(t, w.timeline(), len(seen)+2)
}

func TestQueued(t *testing.T) {
	t.Parallel()
	w, turn, _ := asking(t, 0)
	invocation := w.event(turn.Event).InvocationID
	in := wire.QueuedInput{Invocation: invocation}
	require.Equal(t, wire.QueuedResult{}, must[wire.QueuedResult](w, wire.ActivityQueued, "q1", in))
	m := session.Message{ID: "second", Invocation: "inv-second", Event: session.Event{Content: genai.NewContentFromText("Never mind.", genai.RoleUser)}}
	require.NoError(t, w.store.Post(t.Context(), w.row.Owner, w.row.ID, w.row.Definition, w.row.Mode, m))
	require.Equal(t, wire.QueuedResult{Message: true}, must[wire.QueuedResult](w, wire.ActivityQueued, "q2", in))
}

// An answer that was given is on its way until the run has acted on it.
func TestQueuedBehindAnAnswer(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), counting(t, &runs))
	turn := w.calls("t")
	call := turn.Calls[0]
	out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t1", wire.ToolInput{Call: call.ID})
	in := wire.QueuedInput{Invocation: w.event(turn.Event).InvocationID}
	require.False(t, must[wire.QueuedResult](w, wire.ActivityQueued, "q1", in).Answer)
	w.confirm(out.Request, true, "")
	require.True(t, must[wire.QueuedResult](w, wire.ActivityQueued, "q2", in).Answer)
	must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t2", wire.ToolInput{Call: call.ID, Answered: out.Request})
	require.False(t, must[wire.QueuedResult](w, wire.ActivityQueued, "q3", in).Answer)
}

// Each ending by a policy says so, in an event and to the model of the next invocation, and closes what was asked (pitfall T20).
func TestEndings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in            wire.FinishInput
		code, message string
		model         string
		status        auth.Status
	}{
		"superseded": {
			wire.FinishInput{End: wire.EndSuperseded},
			"SUPERSEDED", "A new message came before the person had answered; the invocation was ended for it.",
			"The person sent a new message before this was answered.", auth.StatusCancelled,
		},
		"expired": {
			wire.FinishInput{End: wire.EndFailed, Denied: true},
			"DEADLINE_EXPIRED", "Nobody logged in for t before the deadline, and the agent's on_deadline is fail.",
			"Nobody logged in before the deadline, so this tool could not run. Say what you could not do.", auth.StatusExpired,
		},
		"calls":    {wire.FinishInput{End: wire.EndLimit, Limit: "model_calls", Most: "5"}, "LIMIT_REACHED", "The invocation reached its limit of 5 model calls and was ended.", "The call was cancelled.", auth.StatusCancelled},
		"tokens":   {wire.FinishInput{End: wire.EndLimit, Limit: "tokens", Most: "1000"}, "LIMIT_REACHED", "The invocation reached its limit of 1000 tokens and was ended.", "The call was cancelled.", auth.StatusCancelled},
		"duration": {wire.FinishInput{End: wire.EndLimit, Limit: "duration", Most: "1h0m0s"}, "LIMIT_REACHED", "The invocation reached its limit of 1h0m0s of work and was ended.", "The call was cancelled.", auth.StatusCancelled},
		"session's calls": {
			wire.FinishInput{End: wire.EndLimit, Limit: "session.model_calls", Most: "5"},
			"LIMIT_REACHED",
			"The session reached its limit of 5 model calls and answers no further message.", "The call was cancelled.", auth.StatusCancelled,
		},
		"session's tokens": {
			wire.FinishInput{End: wire.EndLimit, Limit: "session.tokens", Most: "5"},
			"LIMIT_REACHED",
			"The session reached its limit of 5 tokens and answers no further message.", "The call was cancelled.", auth.StatusCancelled,
		},
		"session's duration": {
			wire.FinishInput{End: wire.EndLimit, Limit: "session.duration", Most: "5h0m0s"},
			"LIMIT_REACHED",
			"The session reached its limit of 5h0m0s of work and answers no further message.", "The call was cancelled.", auth.StatusCancelled,
		},
		"a run of before": {wire.FinishInput{End: wire.EndLimit}, "LIMIT_REACHED", "The invocation reached its limit of model calls and was ended.", "The call was cancelled.", auth.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, turn, out := asking(t, time.Minute)
			in := tc.in
			in.Invocation, in.Heads = w.event(turn.Event).InvocationID, []string{turn.Event}
			if name == "expired" {
				must[wire.CloseResult](w, wire.ActivityClose, "close", wire.CloseInput{Request: out.Request})
				in.Expired = out.Request
			}
			ended := must[wire.FinishResult](w, wire.ActivityFinish, "f", in)
			all := w.events()
			notice := all[len(all)-1]
			require.Equal(t, tc.code, notice.ErrorCode)
			require.Equal(t, tc.message, notice.ErrorMessage)
			require.Equal(t, map[string]any{"error": tc.model}, w.response(all[len(all)-2].ID))
			require.Equal(t, []string{notice.ID}, ended.Heads)
			require.Equal(t, tc.status, w.request(out.Request).Status)
			stored, err := w.store.Invocation(t.Context(), w.row.Owner, in.Invocation)
			require.NoError(t, err)
			require.Equal(t, in.End, stored.Status)
		})
	}
}

// A result holds the tokens that a call has used where a limit counts them, and only there.
func TestTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits agent.Limits
		usage  *genai.GenerateContentResponseUsageMetadata
		want   int
	}{
		"no limit":  {agent.Limits{ModelCalls: 1}, &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 12}, 0},
		"a sum":     {agent.Limits{Tokens: 1}, &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 12, PromptTokenCount: 5}, 12},
		"no sum":    {agent.Limits{Session: agent.SessionLimits{Tokens: 1}}, &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 5, CandidatesTokenCount: 4, ThoughtsTokenCount: 1}, 10},
		"no counts": {agent.Limits{Tokens: 1}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := llm("a")
			a.Limits = tc.limits
			w := newWorld(t, a)
			took := w.says("Hello.")
			w.model = func(context.Context, *models.Request) (*models.Response, error) {
				r := answering("Hello.")
				r.UsageMetadata = tc.usage
				return r, nil
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Equal(t, tc.want, out.Tokens)
		})
	}
}
