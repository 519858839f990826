package activities

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"google.golang.org/genai"

	"tarry/auth"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

// CallModel makes one model call and stores the answer.
func (a *Activities) CallModel(ctx context.Context, in wire.ModelInput) (wire.ModelResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.ModelResult{}, err
	}
	t.scope = in.Scope
	if record, err := a.stored(ctx, t, wire.RoleEvent); err != nil || record != nil {
		return a.modelResult(ctx, t, record, nil, err)
	}
	ctx = a.withArtifacts(ctx, t, t.id(wire.RoleEvent))
	turn, err := a.prepare(ctx, t, in)
	var told *turnError
	switch {
	case errors.As(err, &told):
		return a.modelFailed(ctx, t, in, turn, "CONFIGURATION", told.message)
	case err != nil:
		return wire.ModelResult{}, err
	}
	model, err := a.Models.Resolve(ctx, turn.request.Model)
	if err != nil {
		a.Slog.ErrorContext(ctx, "resolve model", "session_id", t.row.ID, "err", err)
		return a.modelFailed(ctx, t, in, turn, "MODEL_UNKNOWN", "The model "+strconv.Quote(turn.request.Model)+" is not available on this worker.")
	}
	turn.pieces = a.pieces(ctx, t, in, turn)
	a.fault(ctx, "model.before")
	response, err := a.respond(ctx, t, model, turn)
	var broken *callbackError
	if errors.As(err, &broken) && ctx.Err() == nil {
		a.logCallback(ctx, t.row.ID, broken, &toolHooks{scrub: new(auth.Scrubber)})
		return a.modelFailed(ctx, t, in, turn, "CALLBACK_FAILED", "Of agent "+in.Agent+" "+broken.Error()+".")
	}
	if err != nil {
		return a.modelError(ctx, t, in, turn, err)
	}
	a.fault(ctx, "model.answered")
	record, calls, err := a.storeAnswer(ctx, t, in, turn, response)
	if err != nil {
		return wire.ModelResult{}, err
	}
	a.fault(ctx, "model.stored")
	return a.modelResult(ctx, t, record, calls, nil)
}

func (a *Activities) generate(ctx context.Context, m models.Model, r *models.Request, p *pieces) (answer *models.Response, err error) {
	defer a.recovered(ctx, r.Model, &err, &models.Error{Message: "the model failed: internal error"})
	for response, err := range m.GenerateContent(ctx, r, p != nil) {
		if err != nil {
			return nil, err
		}
		if response == nil {
			continue
		}
		if !response.Partial {
			return response, nil
		}
		p.say(ctx, response.Content)
		a.fault(ctx, "model.partial")
	}
	return nil, &models.Error{Message: "the model gave no answer"}
}

func modelFailure(err error) *models.Error {
	var e *models.Error
	if !errors.As(err, &e) {
		e = &models.Error{Message: "the model cannot be called"}
	}
	return e
}

func (t *attempt) retries(e *models.Error) bool { return e.Retryable() && t.number < modelAttempts }

// modelError retries what may pass, and writes down what does not.
func (a *Activities) modelError(ctx context.Context, t *attempt, in wire.ModelInput, turn turn, err error) (wire.ModelResult, error) {
	if ctx.Err() != nil {
		return wire.ModelResult{}, ctx.Err() //nolint:wrapcheck // the SDK compares it
	}
	e := modelFailure(err)
	a.Slog.WarnContext(ctx, "model call", "session_id", t.row.ID, "model", turn.request.Model, "attempt", t.number, "err", e)
	if t.retries(e) {
		return wire.ModelResult{}, again("the model does not answer", e.RetryAfter)
	}
	return a.modelFailed(ctx, t, in, turn, "MODEL_ERROR", e.Error())
}

// modelFailed stores the failure as the turn's event: the person sees it, and the invocation ends.
func (a *Activities) modelFailed(ctx context.Context, t *attempt, in wire.ModelInput, turn turn, code, message string) (wire.ModelResult, error) {
	e := session.NewEvent{Kind: session.KindNotice, Parents: in.Heads, Event: session.Event{
		ID: t.id(wire.RoleEvent), InvocationID: turn.invocation, Author: in.Agent, ErrorCode: code, ErrorMessage: message, TurnComplete: true,
	}}
	var err error
	if e.Actions.ArtifactDelta, err = t.artifacts.delta(ctx); err != nil {
		return wire.ModelResult{}, err
	}
	add := t.append(e)
	add.Whole = turn.pieces.whole()
	records, err := a.Log.Append(ctx, add)
	if err != nil {
		return wire.ModelResult{}, a.failed(ctx, "store model error", err)
	}
	return a.modelResult(ctx, t, records[0], nil, nil)
}

// storeAnswer appends the answer, with the calls it makes and the responses to those that cannot run. calls is nil if another
// attempt has stored its answer.
func (a *Activities) storeAnswer(ctx context.Context, t *attempt, in wire.ModelInput, turn turn, r *models.Response) (record *session.Record, calls []session.Call, err error) {
	e := session.Event{
		ID: t.id(wire.RoleEvent), InvocationID: turn.invocation, Author: in.Agent, Content: own(r.Content), UsageMetadata: r.UsageMetadata,
		FinishReason: r.FinishReason, ModelVersion: r.ModelVersion, ErrorCode: r.ErrorCode, ErrorMessage: r.ErrorMessage,
	}
	var value any
	formed := false
	if turn.output != nil {
		value, formed = turn.output.settle(&e)
	}
	e.Actions.StateDelta = turn.hooks.changes(stateDelta(t.def.Find(in.Agent), &e, value, formed))
	if e.Actions.ArtifactDelta, err = t.artifacts.delta(ctx); err != nil {
		return nil, nil, err
	}
	add := t.calls(turn, session.KindModel, in.Heads, e)
	add.Whole = turn.pieces.whole()
	records, err := a.Log.Append(ctx, add)
	if err != nil {
		return nil, nil, a.failed(ctx, "store model answer", err)
	}
	a.views.Add(t.row, records...)
	if records[0].Repeated {
		return records[0], nil, nil
	}
	return records[0], add.Calls, nil
}

// own copies what will be changed: a model may give the same answer to others too.
func own(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	out := &genai.Content{Role: genai.RoleModel, Parts: make([]*genai.Part, 0, len(c.Parts))}
	for _, part := range c.Parts {
		if part == nil || part.FunctionResponse != nil { // a model answers no call
			continue
		}
		p := *part
		if p.FunctionCall != nil {
			call := *p.FunctionCall
			p.FunctionCall = &call
		}
		out.Parts = append(out.Parts, &p)
	}
	return out
}

// modelResult reads the result off the stored event, so that a retried attempt returns what the first one did. calls are
// those of the event where they are known.
func (a *Activities) modelResult(ctx context.Context, t *attempt, record *session.Record, calls []session.Call, err error) (wire.ModelResult, error) {
	if err != nil {
		return wire.ModelResult{}, err
	}
	out := wire.ModelResult{Event: record.ID}
	if t.def.Root.Limits.CountsTokens() { // it stands in every history that has it
		out.Tokens = tokens(record.UsageMetadata)
	}
	out.Failed = record.ErrorCode != "" && len(record.Calls()) == 0 && (record.Text() == "" || record.ErrorCode == codeOutput)
	for _, call := range calls {
		out.Calls = append(out.Calls, wireCall(call))
	}
	if len(calls) > 0 {
		return out, nil
	}
	for _, call := range record.Calls() {
		row, err := a.Log.Call(ctx, t.row, call.ID)
		if err != nil {
			return out, a.failed(ctx, "find call", err)
		}
		out.Calls = append(out.Calls, wireCall(row))
	}
	return out, nil
}

// response makes the event that answers a call.
func response(id, invocation, author, call, name string, parents []string, body map[string]any) session.NewEvent {
	return session.NewEvent{Kind: session.KindResponse, Parents: slices.Clone(parents), Event: session.Event{
		ID: id, InvocationID: invocation, Author: author,
		Content: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: call, Name: name, Response: body}}}},
	}}
}

// tokens counts what a model call has used. Not every provider gives the sum.
func tokens(u *genai.GenerateContentResponseUsageMetadata) int {
	if u == nil {
		return 0
	}
	return int(max(u.TotalTokenCount, u.PromptTokenCount+u.CandidatesTokenCount+u.ThoughtsTokenCount+u.ToolUsePromptTokenCount))
}
