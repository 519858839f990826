package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

func (w *world) reply(request string, answer string) auth.Request {
	w.t.Helper()
	r, err := w.inputs.Reply(w.t.Context(), everybody, request, json.RawMessage(answer))
	require.NoError(w.t, err)
	return r
}

const days = `{"type":"integer","minimum":1}`

// booking asks for days until it has some, and once more for a reason if they are many.
func booking(t *testing.T, heard *[]tools.Call) tools.Tool {
	t.Helper()
	made, err := function.NewCall("t", "A tool.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
		*heard = append(*heard, c)
		switch {
		case len(c.Answers) == 0:
			return nil, &tools.AnswerRequiredError{Message: "How many days?", Schema: json.RawMessage(days), Payload: map[string]any{"from": "Rome"}}
		case len(c.Answers) == 1 && string(c.Answer) == "30":
			return nil, &tools.AnswerRequiredError{Message: "Why so many?"}
		}
		return map[string]any{"result": c.Answers}, nil
	})
	require.NoError(t, err)
	return made
}

// A tool asks a person in ADK's words, once for each question whatever attempt dies where, and is called with the answers.
func TestToolAsksAPerson(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "ask.before", "ask.after"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			var heard []tools.Call
			w := newWorld(t, llm("a", functions("t")...), booking(t, &heard))
			call := w.calls("t").Calls[0]
			w.crash(point)
			first := w.tool(call, "t1", "")
			require.True(t, first.Input)
			require.False(t, first.Confirmation)
			e := w.event(first.Asking)
			require.Equal(t, "a", e.Author)
			require.Equal(t, session.KindRequest, e.Kind)
			require.Equal(t, []string{first.Request}, e.LongRunningToolIDs)
			asked := e.Calls()[0]
			require.Equal(t, first.Request, asked.ID)
			require.Equal(t, agent.RequestInput, asked.Name)
			schema := map[string]any{"type": "integer", "minimum": 1.0}
			require.Equal(t, map[string]any{
				"interruptId": first.Request, "message": "How many days?", "payload": map[string]any{"from": "Rome"},
				"responseSchema": schema, "response_schema": schema,
			}, asked.Args)

			w.reply(first.Request, "30")
			second := w.tool(call, "t2", first.Request)
			require.NotEqual(t, first.Request, second.Request)
			require.Equal(t, map[string]any{"interruptId": second.Request, "message": "Why so many?"}, w.event(second.Asking).Calls()[0].Args)
			w.reply(second.Request, `"holidays"`)
			done := w.tool(call, "t3", second.Request)
			require.Equal(t, map[string]any{"result": []any{30.0, "holidays"}}, w.response(done.Event))
			require.Equal(t, done, w.tool(call, "t4", second.Request), "as after a reset")
			require.JSONEq(t, `"holidays"`, string(heard[len(heard)-1].Answer))
			require.Equal(t, call.ID, heard[len(heard)-1].ID)
			body, err := json.Marshal(w.stored(first.Request))
			require.NoError(t, err)
			require.NotContains(t, string(body), "How many", "what is asked and answered is kept encrypted")
		})
	}
}

func (w *world) stored(request string) auth.Request {
	w.t.Helper()
	r, err := w.store.Request(w.t.Context(), request, everybody)
	require.NoError(w.t, err)
	return r
}

// Declined or too late, the tool is not called again and the model hears it.
func TestUnansweredQuestion(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{wire.ReasonDenied: "did not answer", wire.ReasonExpired: "before the deadline", wire.ReasonRefused: "goes on asking"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var heard []tools.Call
			w := newWorld(t, llm("a", functions("t")...), booking(t, &heard))
			call := w.calls("t").Calls[0]
			out := w.tool(call, "t1", "")
			if reason == wire.ReasonDenied {
				_, err := w.inputs.Decline(t.Context(), everybody, out.Request)
				require.NoError(t, err)
				_, err = w.inputs.Reply(t.Context(), everybody, out.Request, json.RawMessage("3"))
				require.ErrorIs(t, err, auth.ErrClosed, "the first answer counts")
			}
			settled := must[wire.SettleResult](w, wire.ActivitySettle, "s", wire.SettleInput{Call: call.ID, Request: out.Request, Reason: reason})
			require.Contains(t, w.response(settled.Event)["error"], want)
			require.Len(t, heard, 2, "the activity and its repeat")
		})
	}
}

// What cannot be asked is told to the model at once: nobody could answer it, or the check of an answer would never end.
func TestQuestionsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask  tools.AnswerRequiredError
		says string
	}{
		"recursive schema":   {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`{"$ref":"#"}`)}, "$ref is not allowed"},
		"recursive below":    {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`{"properties":{"a":{"$dynamicRef":"#a"}}}`)}, "$dynamicRef is not allowed"},
		"reference outside":  {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`{"$ref":"https://evil.example/s"}`)}, "$ref is not allowed"},
		"deep schema":        {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(strings.Repeat(`{"not":`, 99) + `{}` + strings.Repeat(`}`, 99))}, "nested deeper"},
		"huge schema":        {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`{"title":"` + strings.Repeat("x", 17<<10) + `"}`)}, "longer than"},
		"no schema at all":   {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`[]`)}, "not a JSON object"},
		"a wrong pattern":    {tools.AnswerRequiredError{Message: "x", Schema: json.RawMessage(`{"pattern":"("}`)}, "not a JSON Schema"},
		"payload is no JSON": {tools.AnswerRequiredError{Message: "x", Payload: make(chan int)}, "not JSON"},
		"payload is long":    {tools.AnswerRequiredError{Message: "x", Payload: strings.Repeat("x", 5000)}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (string, error) { return "", &tc.ask }))
			done := w.tool(w.calls("t").Calls[0], "t1", "")
			require.Empty(t, done.Request)
			require.Contains(t, w.response(done.Event)["error"], tc.says)
		})
	}
}

// A model asks with the built-in tool, and hears the answer.
func TestRequestInputTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", agent.Tool{Builtin: agent.RequestInputTool}))
	w.calls("x") // a turn before
	ask := func(args map[string]any) wire.Call {
		w.model = func(context.Context, *models.Request) (*models.Response, error) {
			return &models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "request_input", Args: args}}}}}, nil
		}
		took := w.says("Ask me.")
		return must[wire.ModelResult](w, wire.ActivityCallModel, "m"+took.Event, wire.ModelInput{Agent: "a", Heads: []string{took.Event}}).Calls[0]
	}
	call := ask(map[string]any{"message": "Which colour?", "response_schema": map[string]any{"enum": []any{"red", "blue"}}})
	out := w.tool(call, "t1", "")
	require.Equal(t, "Which colour?", w.event(out.Asking).Calls()[0].Args["message"])
	_, err := w.inputs.Reply(t.Context(), everybody, out.Request, json.RawMessage(`"green"`))
	var wrong *auth.AnswerError
	require.ErrorAs(t, err, &wrong)
	require.Contains(t, wrong.Text, "enum")
	require.Equal(t, auth.StatusPending, w.stored(out.Request).Status)
	w.reply(out.Request, `"red"`)
	require.Equal(t, map[string]any{"response": "red"}, w.response(w.tool(call, "t2", out.Request).Event))

	none := w.tool(ask(map[string]any{"message": ""}), "t3", "")
	require.Contains(t, w.response(none.Event)["error"], "message is missing")
}

// Of two questions each is answered by itself, in any order; the answers do not mix.
func TestTwoQuestionsAtOnce(t *testing.T) {
	t.Parallel()
	var heard []tools.Call
	w := newWorld(t, llm("a", functions("t")...), booking(t, &heard))
	calls := w.calls("t", "t").Calls
	first, second := w.tool(calls[0], "t1", ""), w.tool(calls[1], "t2", "")
	require.NotEqual(t, first.Request, second.Request)
	w.reply(second.Request, "2")
	require.Equal(t, map[string]any{"result": []any{2.0}}, w.response(w.tool(calls[1], "t3", second.Request).Event))
	require.Equal(t, first.Request, w.tool(calls[0], "t4", "").Request, "asked once")
	w.reply(first.Request, "1")
	require.Equal(t, map[string]any{"result": []any{1.0}}, w.response(w.tool(calls[0], "t5", first.Request).Event))
	require.True(t, time.Now().After(w.stored(first.Request).Created))
}

// A tool that fails with the answer in its error, and a callback that does, tell it to nobody but the model: the answer is in
// no log, whatever becomes of the call.
func TestAnswersAreNotLogged(t *testing.T) {
	t.Parallel()
	const answer = "canary-answer"
	for name, tc := range map[string]struct {
		tool     error
		callback error
	}{
		"error of the tool": {tool: tools.Errorf("there is no room called %s", answer)},
		"cause":             {tool: &tools.Error{Message: "no", Cause: errors.New("lookup " + answer)}},
		"unknown outcome":   {tool: errors.New("gateway failed on " + answer)},
		"not executed":      {tool: fmt.Errorf("%w: dial %s", tools.ErrNotExecuted, answer)},
		"callback":          {callback: errors.New("refused " + answer)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := function.NewCall("t", "A tool.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
				if len(c.Answers) == 0 {
					return nil, &tools.AnswerRequiredError{Message: "Which room?"}
				}
				return map[string]any{}, tc.tool
			})
			require.NoError(t, err)
			a := llm("a", functions("t")...)
			a.Callbacks = agent.Callbacks{agent.AfterTool: named("check")}
			w := newWorldWith(t, callbacks.Set{AfterTool: map[string]callbacks.AfterTool{
				"check": func(context.Context, *callbacks.Context, tools.Call, map[string]any) (map[string]any, error) {
					return nil, tc.callback
				},
			}}, a, made)
			call := w.calls("t").Calls[0]
			asked := w.tool(call, "t1", "")
			w.reply(asked.Request, `"`+answer+`"`)
			var out wire.ToolResult
			if err := w.do(wire.ToolPrefix+call.Tool, "t2", 1, wire.ToolInput{Call: call.ID, Answered: asked.Request}, &out); err != nil {
				require.NotContains(t, err.Error(), answer)
			}
			require.Contains(t, w.log.String(), "not shown")
			require.NotContains(t, w.log.String(), answer)
		})
	}
}
