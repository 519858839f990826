package activities

import (
	"context"
	"strings"

	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// answer stores the result as the call's response. From here on the call never runs again.
func (a *Activities) answer(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, r tools.Result) (wire.ToolResult, error) {
	event, err := a.conclude(ctx, t, in.Answered, call, parents(call), r)
	return wire.ToolResult{Event: event, Escalate: r.Escalate, Final: r.SkipSummarization}, err
}

// conclude stores the response of a call, and that it acts on the answer to a request, if it does.
func (a *Activities) conclude(ctx context.Context, t *attempt, answered string, call session.Call, parents []string, r tools.Result) (event string, err error) {
	e := response(t.id(wire.RoleEvent), call.Invocation, call.Agent, call.ID, publicName(call.Name), parents, r.Response)
	artifacts, err := t.artifacts.delta(ctx)
	if err != nil {
		return "", err
	}
	e.Actions = session.Actions{StateDelta: r.StateDelta, ArtifactDelta: artifacts, Escalate: r.Escalate, SkipSummarization: r.SkipSummarization}
	add := t.append(e)
	add.Answers = map[string]string{call.ID: e.ID}
	if answered != "" {
		add.Acted, add.Status = answered, string(wire.StateRunning)
	}
	records, err := a.Log.Append(ctx, add)
	if err != nil {
		return "", a.failed(ctx, "store result", err)
	}
	a.views.Add(t.row, records...)
	return e.ID, nil
}

// answered returns the result that an earlier attempt stored.
func (a *Activities) answered(ctx context.Context, t *attempt, id string) (wire.ToolResult, error) {
	found, err := a.Log.Events(ctx, t.row, []string{id})
	if err != nil || len(found) == 0 {
		return wire.ToolResult{}, a.failed(ctx, "find result", err)
	}
	return wire.ToolResult{Event: id, Escalate: found[0].Actions.Escalate, Final: found[0].Actions.SkipSummarization}, nil
}

// clean makes a result fit to be stored: plain JSON, without the secrets that the attempt used, of bounded size.
func (a *Activities) clean(r tools.Result, scrub *auth.Scrubber) tools.Result {
	if r.Response == nil {
		r.Response = map[string]any{}
	}
	body, err := plain(r.Response)
	if err != nil {
		r.Response = map[string]any{"error": "the tool's result is not JSON"}
		return r
	}
	r.Response, _ = scrub.ScrubValue(body).(map[string]any)
	if r.StateDelta != nil {
		if delta, err := plain(r.StateDelta); err == nil {
			r.StateDelta, _ = scrub.ScrubValue(delta).(map[string]any)
		}
	}
	if text := encode(r.Response); len(text) > a.MaxResult {
		r.Response = map[string]any{
			"result":    strings.ToValidUTF8(string(text[:a.MaxResult]), ""),
			"truncated": "The result was longer than is kept; this is its beginning, as JSON text.",
		}
	}
	return r
}
