package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

const (
	secretURL   = "https://pay.example/confirm?ticket=canary-secret-url"
	secretState = "canary-secret-state"
)

// curious is a tool that wants a URL visited and a form filled in before it answers.
func curious(t *testing.T, plain bool, heard *[]*tools.Resume) tools.Tool {
	t.Helper()
	made, err := function.NewCall("t", "A tool.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
		*heard = append(*heard, c.Resume)
		if c.Resume != nil {
			return map[string]any{"result": "done " + c.Resume.State}, nil
		}
		e := &tools.InputRequiredError{Plain: plain, State: secretState, Inputs: []tools.Input{{Key: "pay", Mode: tools.InputURL, Message: "Pay first", URL: secretURL}}}
		if !plain {
			e.Inputs = append(e.Inputs, tools.Input{Key: "who", Mode: tools.InputForm, Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
			e.Answers = map[string]tools.InputAnswer{"auto": {Action: tools.InputAccept}}
		} else {
			e.State = ""
		}
		return nil, e
	})
	require.NoError(t, err)
	return made
}

func everybody(agent.Owner) bool { return true }

// A call whose server wants something of a person waits as for a login, and is made again with what the person did. What
// was asked stands in no event and no table in the clear.
func TestInputIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "ask.before", "ask.after"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			var heard []*tools.Resume
			w := newWorld(t, llm("a", functions("t")...), curious(t, false, &heard))
			call := w.calls("t").Calls[0]
			w.crash(point)
			out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t1", wire.ToolInput{Call: call.ID})
			require.True(t, out.Input)
			require.NotEmpty(t, out.Request)
			e := w.event(out.Asking)
			require.Equal(t, agent.RequestCredential, e.Calls()[0].Name)
			r, err := w.store.Request(t.Context(), out.Request, everybody)
			require.NoError(t, err)
			for _, text := range []string{string(e.Body), string(r.Need.Input), w.log.String()} {
				require.NotContains(t, text, "canary-secret")
			}

			q, err := w.inputs.Question(r)
			require.NoError(t, err)
			require.Equal(t, secretURL, q.Inputs[0].URL)
			answers := map[string]auth.InputAnswer{
				"pay": {Action: auth.InputAccept}, "who": {Action: auth.InputAccept, Content: map[string]any{"name": "Ann"}},
			}
			_, err = w.inputs.Answer(t.Context(), everybody, r.ID, answers)
			require.NoError(t, err)

			done := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t2", wire.ToolInput{Call: call.ID, Answered: out.Request})
			require.Equal(t, map[string]any{"result": "done [secret]"}, w.response(done.Event))
			answers["auto"] = auth.InputAnswer{Action: auth.InputAccept}
			last := heard[len(heard)-1]
			require.Equal(t, &tools.Resume{State: secretState, Answers: answers, Visited: []string{secretURL}}, last)
		})
	}
}

// The older error knows no answers: the same call again, or none.
func TestPlainInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action string
		status auth.Status
	}{
		"done":     {auth.InputAccept, auth.StatusGranted},
		"declined": {auth.InputDecline, auth.StatusDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []*tools.Resume
			w := newWorld(t, llm("a", functions("t")...), curious(t, true, &heard))
			call := w.calls("t").Calls[0]
			out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t1", wire.ToolInput{Call: call.ID})
			r, err := w.inputs.Answer(t.Context(), everybody, out.Request, map[string]auth.InputAnswer{"pay": {Action: tc.action}})
			require.NoError(t, err)
			require.Equal(t, tc.status, r.Status)
			if tc.status == auth.StatusDenied {
				settled := must[wire.SettleResult](w, wire.ActivitySettle, "s", wire.SettleInput{Call: call.ID, Request: out.Request, Reason: wire.ReasonDenied})
				require.Contains(t, w.response(settled.Event)["error"], "The person did not do what the tool's server asked for")
				return
			}
			done := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t2", wire.ToolInput{Call: call.ID, Answered: out.Request})
			require.Equal(t, map[string]any{"result": "done "}, w.response(done.Event))
			require.Equal(t, &tools.Resume{Visited: []string{secretURL}}, heard[len(heard)-1])
		})
	}
}

// A form that nobody could see, and so nobody could decline, is the model's to hear of at once.
func TestFormThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"title is a number": `{"type":"object","properties":{"a":{"type":"string","title":5}}}`,
		"nested":            `{"type":"object","properties":{"a":{"type":"object"}}}`,
		"limit is a text":   `{"type":"object","properties":{"a":{"type":"string","minLength":"x"}}}`,
		"many choices":      `{"type":"object","properties":{"a":{"type":"string","enum":["a"` + strings.Repeat(`,"a"`, 300) + `]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := function.NewCall("t", "A tool.", func(context.Context, tools.Call, map[string]any) (map[string]any, error) {
				return nil, &tools.InputRequiredError{Inputs: []tools.Input{{Key: "who", Mode: tools.InputForm, Schema: json.RawMessage(schema)}}}
			})
			require.NoError(t, err)
			w := newWorld(t, llm("a", functions("t")...), made)
			call := w.calls("t").Calls[0]
			out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t1", wire.ToolInput{Call: call.ID})
			require.Empty(t, out.Request)
			require.Contains(t, w.response(out.Event)["error"], "a form that cannot be shown")
		})
	}
}

// An answer that comes after the deadline changes nothing, and says so.
func TestLateInput(t *testing.T) {
	t.Parallel()
	var heard []*tools.Resume
	node := llm("a", functions("t")...)
	node.Wait.Deadline = time.Nanosecond
	w := newWorld(t, node, curious(t, false, &heard))
	call := w.calls("t").Calls[0]
	out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "t1", wire.ToolInput{Call: call.ID})
	r, err := w.inputs.Answer(t.Context(), everybody, out.Request, map[string]auth.InputAnswer{"pay": {Action: auth.InputAccept}})
	require.ErrorIs(t, err, inputs.ErrClosed)
	require.Equal(t, auth.StatusExpired, r.Status)
	r, err = w.store.Request(t.Context(), out.Request, everybody)
	require.NoError(t, err)
	require.Equal(t, auth.StatusPending, r.Status, "the run closes it")
	require.Empty(t, r.Need.Answer)
}
