package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// declarationOf is what a model is told about an agent that it can call.
func declarationOf(a *agent.Agent) tools.Declaration {
	d := tools.Declaration{Name: a.Name, Description: a.Description, Parameters: a.InputSchema}
	if len(d.Parameters) == 0 {
		d.Parameters = json.RawMessage(`{"type":"object","properties":{"request":{"type":"string"}},"required":["request"]}`)
	}
	return d
}

// checkRequest says what is wrong with the arguments of a call of an agent.
func checkRequest(a *agent.Agent, args map[string]any) error {
	if len(a.InputSchema) == 0 {
		if _, ok := args["request"].(string); !ok {
			return fmt.Errorf("agent %s is called with request: a text", a.Name)
		}
		return nil
	}
	schema, err := tools.CompileSchema(a.InputSchema)
	if err != nil {
		return fmt.Errorf("agent %s: input_schema: %w", a.Name, err)
	}
	if err := schema.Check(args); err != nil {
		return fmt.Errorf("agent %s is not called in the form of its input_schema: %w", a.Name, err)
	}
	return nil
}

// request is what an agent behind a tool was called with, as the first words of its conversation.
func (a *Activities) request(ctx context.Context, t *attempt, call string) (*genai.Content, error) {
	row, err := a.Log.Call(ctx, t.row, call)
	if err != nil {
		return nil, a.failed(ctx, "find call", err)
	}
	text := string(row.Args)
	var args map[string]any
	if def := t.def.Find(row.Name); def != nil && len(def.InputSchema) == 0 && json.Unmarshal(row.Args, &args) == nil {
		text, _ = args["request"].(string)
	}
	return genai.NewContentFromText(text, genai.RoleUser), nil
}

// within makes the attempt one of a call: what it appends is seen by the agents that see the call. Only agents behind tools
// have such a scope.
func (a *Activities) within(ctx context.Context, t *attempt, call session.Call) error {
	t.scope = ""
	if !t.def.Behind(call.Agent) {
		return nil
	}
	found, err := a.Log.Events(ctx, t.row, []string{call.Event})
	if err != nil || len(found) == 0 {
		return a.failed(ctx, "find call's event", errors.Join(err, errNoEvent))
	}
	t.scope = found[0].IsolationScope
	return nil
}

var errNoEvent = errors.New("there is no such event")

// Return answers the call of an agent with what the agent said last. It is a local activity where the caller has no callbacks
// around its tools.
func (a *Activities) Return(ctx context.Context, in wire.ReturnInput) (wire.ReturnResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.ReturnResult{}, err
	}
	call, err := a.Log.Call(ctx, t.row, in.Call)
	if err != nil {
		return wire.ReturnResult{}, a.failed(ctx, "find call", err)
	}
	out := wire.ReturnResult{Event: call.Answer, Final: skips(t.def, call)}
	if call.Answer != "" {
		return out, nil
	}
	if err := a.within(ctx, t, call); err != nil {
		return out, err
	}
	view, err := a.views.View(ctx, t.row, in.Heads)
	if err != nil {
		return out, a.failed(ctx, "read session", err)
	}
	ctx = a.withArtifacts(ctx, t, t.id(wire.RoleEvent))
	var scrub auth.Scrubber
	hooks := &toolHooks{scrub: &scrub}
	if node := t.def.Find(call.Agent); node != nil && len(node.Callbacks[agent.AfterTool]) > 0 {
		if hooks.call, err = a.agentCall(ctx, t, call, in.Heads); err != nil {
			return out, err
		}
		if hooks.hooks, err = a.hooksOf(t, node, call.Invocation, hooks.call.State); err != nil {
			return out, again("callbacks of the caller are not registered with this worker", 0)
		}
	}
	result := a.afterTool(ctx, hooks, tools.Result{Response: said(view, call.ID), SkipSummarization: out.Final})
	out.Event, err = a.conclude(ctx, t, "", call, in.Heads, a.clean(result, &scrub))
	return out, err
}

// agentCall is the call of an agent as callbacks see it.
func (a *Activities) agentCall(ctx context.Context, t *attempt, call session.Call, heads []string) (tools.Call, error) {
	c := tools.Call{
		ID: call.ID, Name: call.Name, Args: slices.Clone(call.Args), Owner: t.row.Owner, Session: t.row.ID, Invocation: call.Invocation, Agent: call.Agent,
	}
	var err error
	c.State, err = a.state(ctx, t, heads, call.Invocation)
	return c, err
}

// Guard runs a caller's callbacks before the call of an agent; they may answer in its place, or fail and keep it from running.
func (a *Activities) Guard(ctx context.Context, in wire.GuardInput) (wire.GuardResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.GuardResult{}, err
	}
	call, err := a.Log.Call(ctx, t.row, in.Call)
	if err != nil {
		return wire.GuardResult{}, a.failed(ctx, "find call", err)
	}
	if call.Answer != "" {
		return wire.GuardResult{Event: call.Answer}, nil
	}
	if record, err := a.stored(ctx, t, wire.RoleEvent); err != nil || record != nil {
		return wire.GuardResult{Set: t.id(wire.RoleEvent)}, err
	}
	if err := a.within(ctx, t, call); err != nil {
		return wire.GuardResult{}, err
	}
	ctx = a.withArtifacts(ctx, t, t.id(wire.RoleEvent))
	var scrub auth.Scrubber
	hooks := &toolHooks{scrub: &scrub}
	c, err := a.agentCall(ctx, t, call, in.Heads)
	if err != nil {
		return wire.GuardResult{}, err
	}
	result, found, err := a.beforeTool(ctx, t, hooks, c)
	if err != nil {
		result, found = failure("The agent was not called: a check before it failed."), true
	}
	if found {
		event, err := a.conclude(ctx, t, "", call, []string{call.Event}, a.clean(a.afterTool(ctx, hooks, result), &scrub))
		return wire.GuardResult{Event: event}, err
	}
	changed := hooks.changes(nil)
	artifacts, err := t.artifacts.delta(ctx)
	if err != nil || len(changed)+len(artifacts) == 0 {
		return wire.GuardResult{}, err
	}
	e := session.NewEvent{Kind: session.KindAgent, Parents: in.Heads, Event: session.Event{
		ID: t.id(wire.RoleEvent), InvocationID: call.Invocation, Author: call.Agent, Actions: session.Actions{StateDelta: changed, ArtifactDelta: artifacts},
	}}
	if _, err := a.Log.Append(ctx, t.append(e)); err != nil {
		return wire.GuardResult{}, a.failed(ctx, "store what callbacks set", err)
	}
	return wire.GuardResult{Set: e.ID}, nil
}

// said is the last thing that was said behind a call: in words, or as the object that its output_schema describes.
func said(view []*session.Record, scope string) map[string]any {
	for _, r := range slices.Backward(view) {
		if r.IsolationScope != scope || len(r.Calls()) > 0 || !r.Speaks() {
			continue
		}
		text := strings.TrimSpace(r.Text())
		if text == "" {
			continue
		}
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) == nil && object != nil {
			return object
		}
		return map[string]any{"result": text}
	}
	return map[string]any{"result": ""}
}

// skips says whether the answer of a call of an agent ends its caller's turn.
func skips(def *agent.Definition, call session.Call) bool {
	caller := def.Find(call.Agent)
	return caller != nil && slices.ContainsFunc(caller.Tools, func(t agent.Tool) bool {
		return t.Agent != nil && t.Agent.Agent.Name == call.Name && t.Agent.SkipSummarization
	})
}
