package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// answerRequired finds the typed error of a tool that asks a person.
func answerRequired(err error) (*tools.AnswerRequiredError, bool) {
	var e *tools.AnswerRequiredError
	ok := errors.As(err, &e)
	return e, ok
}

// askQuestion asks on behalf of the tool's code.
func (a *Activities) askQuestion(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, e *tools.AnswerRequiredError, scrub *auth.Scrubber) (out wire.ToolResult, repeat bool, err error) {
	p, err := a.prompt(e, scrub)
	if err != nil {
		a.Slog.WarnContext(ctx, "question cannot be asked", "tool", call.Name, "session_id", t.row.ID, "err", scrub.Scrub(err.Error()))
		out, err = a.answer(ctx, t, in, call, failure("The question cannot be asked: "+scrub.Scrub(err.Error())+"."))
		return out, false, err
	}
	n := needOf(t, call, auth.TypeQuestion)
	n.Slot = auth.QuestionSlot(t.row.Owner, call.ID)
	return a.askFor(ctx, t, in, call, question{need: n, prompt: &p})
}

// prompt makes a question fit to be shown and kept: without secrets, of bounded size, with a schema that can be checked.
func (a *Activities) prompt(e *tools.AnswerRequiredError, scrub *auth.Scrubber) (auth.Prompt, error) {
	if a.Inputs == nil {
		return auth.Prompt{}, errors.New("nobody can be asked here")
	}
	p := auth.Prompt{Message: strings.ToValidUTF8(scrub.Scrub(e.Message), ""), Schema: e.Schema}
	if len(p.Message) > maxHint {
		p.Message = strings.ToValidUTF8(p.Message[:maxHint], "")
	}
	if e.Payload != nil {
		wrapped, err := plain(map[string]any{"payload": e.Payload})
		p.Payload = encode(scrub.ScrubValue(wrapped["payload"]))
		if err != nil || len(p.Payload) > a.MaxResult {
			return p, errors.New("what it shows is not JSON, or too long")
		}
	}
	if err := a.Inputs.CheckPrompt(p); err != nil {
		return p, fmt.Errorf("what is asked: %w", err)
	}
	return p, nil
}

// answers finds what a person has answered to a call's questions, in order. They are found in the store, not in the input: a
// login may have come between the answer and the call.
func (a *Activities) answers(ctx context.Context, t *attempt, call session.Call) ([]json.RawMessage, error) {
	if call.Asking == "" || a.Inputs == nil || call.Toolset != wire.ToolsetFunction && call.Toolset != wire.ToolsetBuiltin {
		return nil, nil
	}
	all, err := a.Requests.AllAnswered(ctx, t.row, auth.QuestionSlot(t.row.Owner, call.ID))
	if err != nil {
		return nil, a.failed(ctx, "find answers", err)
	}
	var out []json.RawMessage
	for _, r := range all {
		said, err := a.Inputs.Said(r)
		if err != nil || r.Call != call.ID {
			a.Slog.ErrorContext(ctx, "open answer", "session_id", t.row.ID, "request_id", r.ID, "err", err)
			return nil, final("answer cannot be read")
		}
		out = append(out, said)
	}
	return out, nil
}

// inquiring is ADK's adk_request_input call. Its clients read the schema under one name or the other.
func inquiring(q question, id string) (*genai.FunctionCall, error) {
	args := map[string]any{"interruptId": id, "message": q.prompt.Message}
	if len(q.prompt.Payload) > 0 {
		args["payload"] = q.prompt.Payload
	}
	if len(q.prompt.Schema) > 0 {
		args["responseSchema"], args["response_schema"] = q.prompt.Schema, q.prompt.Schema
	}
	args, err := plain(args)
	if err != nil {
		return nil, err
	}
	return &genai.FunctionCall{ID: id, Name: agent.RequestInput, Args: args}, nil
}
