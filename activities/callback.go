package activities

import (
	"context"
	"errors"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/session"
	"tarry/wire"
)

// Callback runs the callbacks before or after an agent. What they say is an event of the agent's.
func (a *Activities) Callback(ctx context.Context, in wire.CallbackInput) (wire.CallbackResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.CallbackResult{}, err
	}
	t.scope = in.Scope
	if record, err := a.stored(ctx, t, wire.RoleEvent); err != nil || record != nil {
		return callbackResult(record), err
	}
	node := t.def.Find(in.Agent)
	if node == nil {
		return wire.CallbackResult{}, final("the definition has no such agent")
	}
	view, err := a.views.View(ctx, t.row, in.Heads)
	if err != nil || len(view) == 0 {
		return wire.CallbackResult{}, a.failed(ctx, "read session", err)
	}
	ctx = a.withArtifacts(ctx, t, t.id(wire.RoleEvent))
	e := session.Event{ID: t.id(wire.RoleEvent), InvocationID: view[len(view)-1].InvocationID, Author: in.Agent}
	state, err := a.state(ctx, t, in.Heads, e.InvocationID)
	if err != nil {
		return wire.CallbackResult{}, err
	}
	content, changed, err := a.around(ctx, t, node, in.After, e.InvocationID, state)
	artifacts, failed := t.artifacts.delta(ctx)
	if failed != nil {
		return wire.CallbackResult{}, failed
	}
	e.Actions.ArtifactDelta = artifacts
	var broken *callbackError
	var told *turnError
	kind := session.KindAgent
	switch {
	case ctx.Err() != nil:
		return wire.CallbackResult{}, ctx.Err() //nolint:wrapcheck // the SDK compares it
	case errors.As(err, &broken):
		a.logCallback(ctx, t.row.ID, broken, &toolHooks{scrub: new(auth.Scrubber)})
		kind, e.ErrorCode, e.ErrorMessage = session.KindNotice, "CALLBACK_FAILED", "Of agent "+in.Agent+" "+broken.Error()+"."
	case errors.As(err, &told):
		kind, e.ErrorCode, e.ErrorMessage = session.KindNotice, "CONFIGURATION", told.message
	case err != nil:
		return wire.CallbackResult{}, err
	case content == nil && len(changed)+len(artifacts) == 0:
		return wire.CallbackResult{}, nil
	default:
		e.Content, e.Actions.StateDelta = spoken(content), changed
	}
	records, err := a.Log.Append(ctx, t.append(session.NewEvent{Kind: kind, Parents: in.Heads, Event: e}))
	if err != nil {
		return wire.CallbackResult{}, a.failed(ctx, "store what callbacks say", err)
	}
	return callbackResult(records[0]), nil
}

// around runs the callbacks of one side, until one says something.
func (a *Activities) around(ctx context.Context, t *attempt, node *agent.Agent, after bool, invocation string, state map[string]any) (*genai.Content, map[string]any, error) {
	h, err := a.hooksOf(t, node, invocation, state)
	if err != nil {
		return nil, nil, err
	}
	var content *genai.Content
	if after {
		content, _, err = first(h, agent.AfterAgent, a.Callbacks.AfterAgent, func(f callbacks.AfterAgent, c *callbacks.Context) (*genai.Content, bool, error) {
			r, err := f(ctx, c)
			return r, r != nil, err
		})
	} else {
		content, _, err = first(h, agent.BeforeAgent, a.Callbacks.BeforeAgent, func(f callbacks.BeforeAgent, c *callbacks.Context) (*genai.Content, bool, error) {
			r, err := f(ctx, c)
			return r, r != nil, err
		})
	}
	return content, h.changes(nil), err
}

// spoken leaves calls and responses out: code that is no model calls no tools, and answers no calls.
func spoken(c *genai.Content) *genai.Content {
	c = own(c)
	if c == nil {
		return nil
	}
	var parts []*genai.Part
	for _, p := range c.Parts {
		if p.FunctionCall == nil {
			parts = append(parts, p)
		}
	}
	return &genai.Content{Role: genai.RoleModel, Parts: parts}
}

func callbackResult(r *session.Record) wire.CallbackResult {
	if r == nil {
		return wire.CallbackResult{}
	}
	return wire.CallbackResult{Event: r.ID, Said: r.Content != nil, Failed: r.ErrorCode != ""}
}
