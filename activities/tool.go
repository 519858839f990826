package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// CallTool runs one call, or asks for the login that it needs.
func (a *Activities) CallTool(ctx context.Context, in wire.ToolInput) (wire.ToolResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.ToolResult{}, err
	}
	ctx = a.withArtifacts(ctx, t, in.Call)
	for range maxMeanwhile {
		out, repeat, err := a.tryTool(ctx, t, in)
		if err != nil || !repeat {
			return out, err
		}
	}
	return wire.ToolResult{}, again("the credential changes as it is used", 0)
}

// tryTool makes one try; repeat says that the credential arrived while it was being asked for.
func (a *Activities) tryTool(ctx context.Context, t *attempt, in wire.ToolInput) (out wire.ToolResult, repeat bool, err error) {
	if out, held, repeat, err := a.hold(ctx, t, in); held || err != nil {
		return out, repeat, err
	}
	call, err := a.Log.Start(ctx, t.row, in.Call)
	if err != nil {
		return out, false, a.failed(ctx, "start call", err)
	}
	if err := a.within(ctx, t, call); err != nil {
		return out, false, err
	}
	if call.Answer != "" {
		out, err = a.answered(ctx, t, call.Answer)
		return a.listed(ctx, t, call, out), false, err
	}
	if out, found, err := a.underWay(ctx, t, in, call); found || err != nil {
		return out, false, err
	}
	confirmation, approved, err := a.approval(ctx, t, call, true)
	if err != nil {
		return out, false, err
	}
	if approved || a.guarded(t, call) {
		call.Idempotent = false // one approval is for one run
	}
	if call.Started && !call.Idempotent {
		t.artifacts.earlier = true
		out, err = a.answer(ctx, t, in, call, outcomeUnknown())
		return out, false, err
	}
	a.fault(ctx, "tool.started")
	var scrub auth.Scrubber
	t.artifacts.scrub = &scrub
	hooks := toolHooks{scrub: &scrub}
	result, err := a.runTool(ctx, t, call, confirmation, &hooks, &scrub)
	a.fault(ctx, "tool.ran")
	if need, ok := required(err); ok {
		return a.askFor(ctx, t, in, call, question{need: need.Need})
	}
	if confirm, ok := confirmationRequired(err); ok {
		return a.confirmOwn(ctx, t, in, call, confirm, &scrub)
	}
	if ask, ok := answerRequired(err); ok {
		return a.askQuestion(ctx, t, in, call, ask, &scrub)
	}
	if input, ok := inputRequired(err); ok && a.Inputs != nil {
		q := inputQuestion(t, call, input)
		if err = a.Inputs.Check(*q.input); err == nil {
			return a.askFor(ctx, t, in, call, q)
		}
		err = &tools.Error{Message: "The tool's server wants a person to fill in a form that cannot be shown.", Cause: err}
	}
	ran := err == nil && !hooks.skipped
	if err != nil {
		cause := err
		if result, err = a.toolFailed(ctx, t, call, err, &hooks); err != nil {
			return out, false, err
		}
		result = a.failedTool(ctx, &hooks, result, cause)
	}
	result = a.afterTool(ctx, &hooks, result)
	if waits, err := a.waitsForResult(ctx, t, call); err != nil {
		return out, false, err
	} else if ran && waits {
		out, err = a.begun(ctx, t, in, call, a.clean(result, &scrub))
		return out, false, err
	}
	out, err = a.answer(ctx, t, in, call, a.clean(result, &scrub))
	a.fault(ctx, "tool.stored")
	return a.listed(ctx, t, call, out), false, err
}

// askFor gives the call's mark back first: it did not run, and a crash from here on must not make its outcome unknown.
func (a *Activities) askFor(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, q question) (out wire.ToolResult, repeat bool, err error) {
	if err := a.Log.ReleaseCall(ctx, t.row, call.ID); err != nil {
		return out, false, a.failed(ctx, "release call", err)
	}
	q.agent, q.call, q.functionCall, q.parents, q.acted = call.Agent, call.ID, call.ID, parents(call), in.Answered
	asked, err := a.ask(ctx, t, q)
	switch {
	case err != nil:
		return out, false, err
	case asked.Granted:
		return out, true, nil
	case asked.Full:
		out, err = a.answer(ctx, t, in, call, failure(tooManyAsked))
		return out, false, err
	case asked.Denied:
		reason := wire.ReasonDenied
		if asked.Request.Status == auth.StatusExpired {
			reason = wire.ReasonExpired
		}
		out, err = a.answer(ctx, t, in, call, failure(settled(reason, asked.Request.Need.Type)))
		out.Denied = true
		return out, false, err
	}
	return wire.ToolResult{Asked: asked.wire()}, false, nil
}

func parents(call session.Call) []string { return []string{call.Last} }

// runTool finds the tool and calls it with a broker of its own.
func (a *Activities) runTool(ctx context.Context, t *attempt, call session.Call, confirmation *tools.Confirmation, hooks *toolHooks, scrub *auth.Scrubber) (result tools.Result, err error) {
	defer a.recovered(ctx, call.Name, &err, tools.Errorf("the tool failed: internal error"))
	broker := a.Broker(t.row.Owner, Use{Session: t.row.ID, Agent: call.Agent, Tool: call.Name}, scrub)
	state, err := a.state(ctx, t, []string{call.Event}, call.Invocation)
	if err != nil {
		return result, fmt.Errorf("%w: %w", tools.ErrNotExecuted, err)
	}
	c := tools.Call{
		ID: call.ID, Name: call.Name, Args: call.Args, Owner: t.row.Owner, Session: t.row.ID, Invocation: call.Invocation, Agent: call.Agent, State: state,
		Confirmation: confirmation,
	}
	if c.Resume, err = a.resume(ctx, t, call, scrub); err != nil {
		return result, err
	}
	if c.Answers, err = a.answers(ctx, t, call); err != nil {
		return result, err
	}
	if n := len(c.Answers); n > 0 {
		c.Answer = c.Answers[n-1]
	}
	hooks.told = c.Resume != nil || len(c.Answers) > 0 || confirmation != nil && len(confirmation.Payload) > 0
	if result, skip, err := a.beforeTool(ctx, t, hooks, c); skip || err != nil {
		hooks.skipped = skip
		return result, err
	}
	switch call.Toolset {
	case wire.ToolsetBuiltin:
		return callRegistered(ctx, a.Builtins, c, broker)
	case wire.ToolsetFunction:
		return callRegistered(ctx, a.Functions, c, broker)
	}
	def := t.def.Toolset(call.Toolset)
	if def == nil {
		return result, tools.Errorf("there is no toolset %s", strconv.Quote(call.Toolset))
	}
	toolset, err := a.Toolsets.Open(ctx, def, t.row.Owner, broker)
	if err != nil {
		return result, err //nolint:wrapcheck // classified by the caller
	}
	if def.Lazy && call.Name == connectTool(def) {
		return a.connect(ctx, t, def, toolset, scrub)
	}
	return toolset.Call(ctx, c) //nolint:wrapcheck // classified by the caller
}

func callRegistered(ctx context.Context, r *tools.Registry, c tools.Call, broker auth.Broker) (tools.Result, error) {
	tool, ok := r.Tool(c.Name)
	if !ok {
		return tools.Result{}, fmt.Errorf("%w: tool %s is not registered with this worker", tools.ErrNotExecuted, c.Name)
	}
	var declared []agent.Auth
	if authorized, ok := tool.(tools.Authorized); ok {
		declared = authorized.Credentials()
	}
	return tool.Call(auth.WithBroker(ctx, broker, c.Name, declared), c) //nolint:wrapcheck // classified by the caller
}

// toolFailed decides whether a failed call is tried again or told to the model. A tool's error may hold the token that it
// sent; its text is logged without, and not at all where it may hold what a person has answered.
func (a *Activities) toolFailed(ctx context.Context, t *attempt, call session.Call, err error, hooks *toolHooks) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, ctx.Err() //nolint:wrapcheck // the SDK compares it
	}
	cause := hooks.loggable(reasonOf(err))
	var told *tools.Error
	harmless := errors.Is(err, tools.ErrNotExecuted) || errors.Is(err, auth.ErrUnavailable)
	switch {
	case errors.As(err, new(*tools.InputRequiredError)):
		return failure("The tool wants input from a person, which cannot be asked for here."), nil
	case errors.Is(err, auth.ErrMisconfigured), errors.Is(err, auth.ErrNotDeclared):
		a.Slog.ErrorContext(ctx, "credential cannot be had", "tool", call.Name, "session_id", t.row.ID, "err", cause)
		return failure("The tool is not set up: its credential cannot be had. An operator finds the reason in the log."), nil
	case errors.As(err, &told):
		a.Slog.InfoContext(ctx, "tool error", "tool", call.Name, "session_id", t.row.ID, "err", cause)
		return failure(told.Message), nil
	case harmless || call.Idempotent:
		a.Slog.WarnContext(ctx, "tool call", "tool", call.Name, "session_id", t.row.ID, "attempt", t.number, "err", cause)
		if t.number >= toolAttempts {
			return failure("The tool cannot be reached. It was tried several times."), nil
		}
		if err := a.Log.ReleaseCall(ctx, t.row, call.ID); err != nil {
			return tools.Result{}, a.failed(ctx, "release call", err)
		}
		return tools.Result{}, again("the tool cannot be reached", 0)
	default:
		a.Slog.WarnContext(ctx, "outcome of tool call is unknown", "tool", call.Name, "session_id", t.row.ID, "err", cause)
		return outcomeUnknown(), nil
	}
}

// reasonOf is what the log hears: the cause of an error that has one text for the model and another for operators.
func reasonOf(err error) string {
	var told *tools.Error
	if errors.As(err, &told) && told.Cause != nil {
		return told.Cause.Error()
	}
	return err.Error()
}

func failure(message string) tools.Result {
	return tools.Result{Response: map[string]any{"error": message}}
}

func outcomeUnknown() tools.Result {
	return failure("outcome unknown: the call was interrupted and may or may not have taken effect. Check before you call the tool again.")
}
