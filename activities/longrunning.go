package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// A long-running call has one request, whose id is the call's. It is opened in the transaction that stores what the tool has
// returned, and from then on the tool is not called again, whatever dies: the request says that it has run.

// longRunning says whether a tool of an agent is a long-running one: by the definition, or by what is registered.
func (a *Activities) longRunning(node *agent.Agent, name string) bool {
	if node != nil && slices.ContainsFunc(node.Tools, func(tool agent.Tool) bool { return tool.Function == name && tool.LongRunning }) {
		return true
	}
	tool, _ := a.Functions.Tool(name)
	long, ok := tool.(tools.LongRunning)
	return ok && long.LongRunning()
}

// waitsForResult says whether what a call returned is an interim result. Clients must have been told so with the call: they
// could not answer it otherwise.
func (a *Activities) waitsForResult(ctx context.Context, t *attempt, call session.Call) (bool, error) {
	if call.Toolset != wire.ToolsetFunction || a.Inputs == nil || !a.longRunning(t.def.Find(call.Agent), call.Name) {
		return false, nil
	}
	found, err := a.Log.Events(ctx, t.row, []string{call.Event})
	if err != nil {
		return false, a.failed(ctx, "find call's event", err)
	}
	return len(found) == 1 && slices.Contains(found[0].LongRunningToolIDs, call.ID), nil
}

// begun stores what a long-running tool has returned, and waits for its result.
func (a *Activities) begun(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, r tools.Result) (wire.ToolResult, error) {
	if nothing(r.Response) {
		r.Response = nil
	}
	n := needOf(t, call, auth.TypeResult)
	n.Slot = auth.ResultSlot(t.row.Owner, call.ID)
	artifacts, err := t.artifacts.delta(ctx)
	if err != nil {
		return wire.ToolResult{}, err
	}
	asked, err := a.ask(ctx, t, question{
		id: call.ID, agent: call.Agent, call: call.ID, parents: parents(call), acted: in.Answered, need: n, interim: &r, artifacts: artifacts,
	})
	if err != nil {
		return wire.ToolResult{}, err
	}
	return wire.ToolResult{Asked: asked.wire()}, nil
}

// nothing says whether a tool has returned no interim result: nil or empty, also where it is wrapped.
func nothing(response map[string]any) bool {
	if len(response) != 1 {
		return len(response) == 0
	}
	inner, ok := response["result"]
	return ok && (inner == nil || inner == "")
}

// interim is the event that shows what a long-running tool has returned; it has no id if there is nothing to show.
func (t *attempt) interim(q question) session.NewEvent {
	call := session.Call{ID: q.call, Agent: q.agent, Name: q.need.Tool}
	e := session.Interim(call, t.id(wire.RoleInterim), q.parents, q.interim.Response)
	e.Branch, e.Actions.StateDelta = t.def.Branch(q.agent), q.interim.StateDelta
	e.Actions.ArtifactDelta = q.artifacts
	if q.interim.Response == nil {
		e.Content = nil
	}
	if e.Content == nil && len(e.Actions.StateDelta)+len(q.artifacts) == 0 {
		e.ID = ""
	}
	return e
}

// underWay finds how a long-running call stands whose tool has run; found is false for all others.
func (a *Activities) underWay(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call) (out wire.ToolResult, found bool, err error) {
	if call.Asking == "" || call.Toolset != wire.ToolsetFunction {
		return out, false, nil
	}
	r, err := a.Requests.RequestOf(ctx, t.row, call.ID)
	switch {
	case errors.Is(err, auth.ErrNoRequest):
		return out, false, nil
	case err != nil:
		return out, true, a.failed(ctx, "find request of call", err)
	}
	switch r.Status {
	case auth.StatusGranted:
		out, err = a.completed(ctx, t, in, call, r)
		return out, true, err
	case auth.StatusPending, auth.StatusExchanging:
		if err := a.Log.ReleaseCall(ctx, t.row, call.ID); err != nil {
			return out, true, a.failed(ctx, "release call", err)
		}
		return wire.ToolResult{Asked: asked{auth.Asked{Request: r, Event: call.Asking}}.wire()}, true, nil
	case auth.StatusDenied, auth.StatusExpired, auth.StatusCancelled:
	}
	reason := wire.ReasonDenied
	if r.Status == auth.StatusExpired {
		reason = wire.ReasonExpired
	}
	out, err = a.answer(ctx, t, in, call, failure(settled(reason, auth.TypeResult)))
	out.Denied = true
	return out, true, err
}

// completed stores the final result as the call's response.
func (a *Activities) completed(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, r auth.Request) (wire.ToolResult, error) {
	if a.Inputs == nil {
		return wire.ToolResult{}, final("result cannot be read")
	}
	said, err := a.Inputs.Said(r)
	var response map[string]any
	if err == nil {
		err = json.Unmarshal(said, &response)
	}
	if err != nil {
		a.Slog.ErrorContext(ctx, "open result", "session_id", t.row.ID, "request_id", r.ID, "err", err)
		return wire.ToolResult{}, final("result cannot be read")
	}
	return a.answer(ctx, t, in, call, a.clean(tools.Result{Response: response}, new(auth.Scrubber)))
}
