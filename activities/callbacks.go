package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/tools"
)

// callbackError is a callback that failed. What it says is the application's and may hold anything: it goes to the log.
type callbackError struct {
	point agent.CallbackPoint
	name  string
	cause error
}

func (e *callbackError) Error() string {
	return fmt.Sprintf("the callback %s of %s failed", strconv.Quote(e.name), e.point.Key())
}

func (e *callbackError) Unwrap() error { return e.cause }

// hooks are the callbacks of one call: they share the state that they set.
type hooks struct {
	set   callbacks.Set
	named agent.Callbacks
	base  callbacks.Context
	delta map[string]any
}

// hooksOf returns nil for an agent that names none; every method of nil does nothing.
func (a *Activities) hooksOf(t *attempt, node *agent.Agent, invocation string, state map[string]any) (*hooks, error) {
	if node == nil || len(node.Callbacks) == 0 {
		return nil, nil //nolint:nilnil // no callbacks
	}
	for p, list := range node.Callbacks {
		for _, c := range list {
			if !slices.Contains(a.Callbacks.Names(p), c.Name) {
				return nil, &turnError{fmt.Sprintf("Agent %s uses the callback %s, which is not registered with this worker.", node.Name, c.Name)}
			}
		}
	}
	own, err := plain(state) // what it holds belongs to events that others read too
	if err != nil {
		return nil, err
	}
	return &hooks{set: a.Callbacks, named: node.Callbacks, delta: map[string]any{}, base: callbacks.Context{
		Owner: t.row.Owner, Session: t.row.ID, Invocation: invocation, Agent: node.Name, State: own,
	}}, nil
}

// first runs the callbacks of a point until one has a result.
func first[F any, R any](h *hooks, p agent.CallbackPoint, byName map[string]F, run func(F, *callbacks.Context) (R, bool, error)) (result R, found bool, err error) {
	if h == nil {
		return result, false, nil
	}
	for _, c := range h.named[p] {
		own := h.base
		own.Args = slices.Clone(c.Args)
		result, found, err = guarded(byName[c.Name], &own, run)
		if err == nil {
			var delta map[string]any
			if delta, err = plain(own.Delta()); err == nil {
				maps.Copy(h.delta, delta)
			}
		}
		if err != nil {
			return result, false, &callbackError{point: p, name: c.Name, cause: err}
		}
		if found {
			return result, true, nil
		}
	}
	return result, false, nil
}

func guarded[F any, R any](f F, c *callbacks.Context, run func(F, *callbacks.Context) (R, bool, error)) (result R, found bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic of type %T", p) // its text may hold anything
		}
	}()
	return run(f, c)
}

// has says whether there are callbacks of any of the points.
func (h *hooks) has(points ...agent.CallbackPoint) bool {
	return h != nil && slices.ContainsFunc(points, func(p agent.CallbackPoint) bool { return len(h.named[p]) > 0 })
}

// changes is what the callbacks have set, and over it what is set anyway.
func (h *hooks) changes(over map[string]any) map[string]any {
	if h == nil || len(h.delta) == 0 {
		return over
	}
	out := maps.Clone(h.delta)
	maps.Copy(out, over)
	return out
}

// respond makes a model call with its callbacks around it.
func (a *Activities) respond(ctx context.Context, t *attempt, m models.Model, turn turn) (*models.Response, error) {
	h := turn.hooks
	if h.has(agent.BeforeModel, agent.OnModelError) {
		turn.request.Contents = copied(turn.request.Contents)
	}
	response, found, err := first(h, agent.BeforeModel, a.Callbacks.BeforeModel, func(f callbacks.BeforeModel, c *callbacks.Context) (*models.Response, bool, error) {
		r, err := f(ctx, c, turn.request)
		return r, r != nil, err
	})
	if found || err != nil {
		return response, err
	}
	response, err = a.formed(ctx, m, turn)
	if err != nil {
		if ctx.Err() != nil || t.retries(modelFailure(err)) {
			return nil, err
		}
		cause := err
		response, found, err = first(h, agent.OnModelError, a.Callbacks.OnModelError, func(f callbacks.OnModelError, c *callbacks.Context) (*models.Response, bool, error) {
			r, err := f(ctx, c, turn.request, cause)
			return r, r != nil, err
		})
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, cause
		}
	}
	if !h.has(agent.AfterModel) {
		return response, nil
	}
	given := *response // a model may give the same answer to others too
	if given.Content != nil {
		given.Content = copied([]*genai.Content{given.Content})[0]
	}
	replaced, found, err := first(h, agent.AfterModel, a.Callbacks.AfterModel, func(f callbacks.AfterModel, c *callbacks.Context) (*models.Response, bool, error) {
		r, err := f(ctx, c, &given)
		return r, r != nil, err
	})
	if err != nil || found {
		return replaced, err
	}
	return &given, nil
}

// copied is a deep copy: what a view holds is shared.
func copied(contents []*genai.Content) []*genai.Content {
	var out []*genai.Content
	if err := json.Unmarshal(encode(contents), &out); err != nil || len(out) != len(contents) {
		return contents
	}
	return out
}

// toolHooks are the callbacks around one tool call.
type toolHooks struct {
	*hooks
	call tools.Call
	// withheld says that a callback failed: the others do not see the call.
	withheld bool
	// skipped says that a callback has answered in the tool's place.
	skipped bool
	// told says that the call knows what a person has answered.
	told  bool
	scrub *auth.Scrubber
}

// loggable is what the log may hear of an error's text.
func (h *toolHooks) loggable(text string) string {
	if h.told {
		return "not shown: the call knows what a person has answered"
	}
	return h.scrub.Scrub(text)
}

// beforeTool asks the callbacks whether the tool is to run. It keeps the call for those that come later.
func (a *Activities) beforeTool(ctx context.Context, t *attempt, h *toolHooks, call tools.Call) (tools.Result, bool, error) {
	own, err := a.hooksOf(t, t.def.Find(call.Agent), call.Invocation, call.State)
	if err != nil {
		return tools.Result{}, false, fmt.Errorf("%w: %w", tools.ErrNotExecuted, err)
	}
	if own == nil {
		return tools.Result{}, false, nil
	}
	h.hooks, h.call = own, call
	h.call.Args, h.call.State = slices.Clone(call.Args), own.base.State
	h.call.Resume = nil // what a person told the tool's server
	h.call.Answer, h.call.Answers = slices.Clone(call.Answer), slices.Clone(call.Answers)
	response, found, err := first(own, agent.BeforeTool, a.Callbacks.BeforeTool, func(f callbacks.BeforeTool, c *callbacks.Context) (map[string]any, bool, error) {
		r, err := f(ctx, c, h.call)
		return r, r != nil, err
	})
	if err != nil {
		a.withhold(ctx, h, err)
		return tools.Result{}, false, &tools.Error{Message: "The tool was not run: a check before it failed.", Cause: err}
	}
	return tools.Result{Response: response}, found, nil
}

// failedTool asks the callbacks for a response in place of a failure.
func (a *Activities) failedTool(ctx context.Context, h *toolHooks, result tools.Result, cause error) tools.Result {
	if h.withheld {
		return result
	}
	response, found, err := first(h.hooks, agent.OnToolError, a.Callbacks.OnToolError, func(f callbacks.OnToolError, c *callbacks.Context) (map[string]any, bool, error) {
		r, err := f(ctx, c, h.call, cause)
		return r, r != nil, err
	})
	if err != nil {
		a.withhold(ctx, h, err)
		return result
	}
	if found {
		result.Response = response
	}
	return result
}

// afterTool lets the callbacks replace what the model is told. What the tool did to the state stays.
func (a *Activities) afterTool(ctx context.Context, h *toolHooks, result tools.Result) tools.Result {
	if !h.withheld && h.has(agent.AfterTool) {
		given, err := plain(result.Response)
		var response map[string]any
		var found bool
		if err == nil {
			if given == nil {
				given = map[string]any{}
			}
			response, found, err = first(h.hooks, agent.AfterTool, a.Callbacks.AfterTool, func(f callbacks.AfterTool, c *callbacks.Context) (map[string]any, bool, error) {
				r, err := f(ctx, c, h.call, given)
				return r, r != nil, err
			})
		}
		switch {
		case err != nil:
			a.withhold(ctx, h, err)
			result.Response = failure("The tool has run, but a check after it failed and its result is withheld.").Response
		case found:
			result.Response = response
		default:
			result.Response = given // callbacks may have changed it in place, as in ADK
		}
	}
	result.StateDelta = h.changes(result.StateDelta)
	return result
}

func (a *Activities) withhold(ctx context.Context, h *toolHooks, err error) {
	h.withheld = true
	a.logCallback(ctx, h.call.Session, err, h)
}

func (a *Activities) logCallback(ctx context.Context, sessionID string, err error, h *toolHooks) {
	a.Slog.ErrorContext(ctx, "callback failed", "session_id", sessionID, "callback", err.Error(), "err", h.loggable(fmt.Sprint(errors.Unwrap(err))))
}
