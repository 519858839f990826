package activities

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

// Emit stores what a custom agent says. It is a local activity: its input holds content, and stands in no history.
func (a *Activities) Emit(ctx context.Context, in wire.EmitInput) (wire.EmitResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.EmitResult{}, err
	}
	t.scope = in.Scope
	invocation, err := a.invocation(ctx, t, in.Heads)
	if err != nil {
		return wire.EmitResult{}, err
	}
	e := session.Event{ID: t.id(wire.RoleEvent), InvocationID: invocation, Author: in.Agent, Actions: session.Actions{Escalate: in.Escalate}}
	if in.Text != "" {
		e.Content = genai.NewContentFromText(in.Text, genai.RoleModel)
	}
	if len(in.StateDelta) > 0 {
		if e.Actions.StateDelta, err = plain(in.StateDelta); err != nil {
			return wire.EmitResult{}, err
		}
	}
	if _, err := a.Log.Append(ctx, t.append(session.NewEvent{Kind: session.KindAgent, Parents: in.Heads, Event: e})); err != nil {
		return wire.EmitResult{}, a.failed(ctx, "store event of custom agent", err)
	}
	return wire.EmitResult{Event: e.ID}, nil
}

// invocation is the one that heads belong to.
func (a *Activities) invocation(ctx context.Context, t *attempt, heads []string) (string, error) {
	if len(heads) == 0 {
		return "", final("there is nothing to follow")
	}
	found, err := a.Log.Events(ctx, t.row, heads[:1])
	if err != nil || len(found) == 0 {
		return "", a.failed(ctx, "find what is followed", errors.Join(err, errNoEvent))
	}
	return found[0].InvocationID, nil
}

// Open makes a tool call on behalf of a custom agent, as a model's answer does. It is a local activity, as Emit is.
func (a *Activities) Open(ctx context.Context, in wire.OpenInput) (wire.OpenResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.OpenResult{}, err
	}
	t.scope = in.Scope
	node := t.def.Find(in.Agent)
	if node == nil {
		return wire.OpenResult{}, final("the definition has no such agent")
	}
	args := map[string]any{}
	if len(in.Args) > 0 && string(in.Args) != "null" {
		if err := json.Unmarshal(in.Args, &args); err != nil {
			return wire.OpenResult{}, final("arguments of a tool are not a JSON object")
		}
	}
	turn := turn{tools: map[string]offered{}, request: &models.Request{Config: &genai.GenerateContentConfig{}}}
	if turn.invocation, err = a.invocation(ctx, t, in.Heads); err != nil {
		return wire.OpenResult{}, err
	}
	var broken *turnError
	if _, err := a.offer(ctx, t, node, in.Lists, &turn); err != nil && !errors.As(err, &broken) {
		return wire.OpenResult{}, err
	}
	e := session.Event{ID: t.id(wire.RoleEvent), InvocationID: turn.invocation, Author: in.Agent}
	e.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: in.Tool, Args: args}}}}
	add := t.calls(turn, session.KindAgent, in.Heads, e)
	if broken != nil && len(add.Events) > 1 {
		add.Events[1].Content.Parts[0].FunctionResponse.Response = map[string]any{"error": broken.message}
	}
	if _, err := a.Log.Append(ctx, add); err != nil {
		return wire.OpenResult{}, a.failed(ctx, "store call of custom agent", err)
	}
	return wire.OpenResult{Event: e.ID, Call: wireCall(add.Calls[0])}, nil
}

// Read reads state or a response for a custom agent. It is a local activity; its result stands in the history.
func (a *Activities) Read(ctx context.Context, in wire.ReadInput) (wire.ReadResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.ReadResult{}, err
	}
	var value any
	found := false
	if in.Key != "" {
		view, err := a.views.View(ctx, t.row, in.Heads)
		if err != nil || len(view) == 0 {
			return wire.ReadResult{}, a.failed(ctx, "read session", err)
		}
		state, err := a.state(ctx, t, in.Heads, view[len(view)-1].InvocationID)
		if err != nil {
			return wire.ReadResult{}, err
		}
		value, found = state[in.Key]
	} else if value, found, err = a.responseOf(ctx, t, in); err != nil {
		return wire.ReadResult{}, err
	}
	if !found {
		return wire.ReadResult{}, nil
	}
	body := encode(value)
	if len(body) > wire.MaxRead {
		return wire.ReadResult{TooLarge: len(body)}, nil
	}
	return wire.ReadResult{Value: body}, nil
}

func (a *Activities) responseOf(ctx context.Context, t *attempt, in wire.ReadInput) (any, bool, error) {
	found, err := a.Log.Events(ctx, t.row, []string{in.Event})
	if err != nil || len(found) == 0 || len(found[0].Responses()) == 0 {
		return nil, false, a.failed(ctx, "find response", errors.Join(err, errNoEvent))
	}
	response := found[0].Responses()[0].Response
	if !in.Error {
		return response, true, nil
	}
	if problem, ok := response["error"]; ok {
		return map[string]any{"error": problem}, true, nil
	}
	return nil, false, nil
}
