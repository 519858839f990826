package activities

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

func publicName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// settled is what a model hears of a call that did not run to its end.
func settled(reason, needType string) string {
	input, confirmation := needType == auth.TypeInput, needType == auth.TypeConfirmation
	asks, result := needType == auth.TypeQuestion, needType == auth.TypeResult
	switch {
	case asks && reason == wire.ReasonDenied:
		return "The person did not answer. Do not ask again now; say what you could not do."
	case asks && reason == wire.ReasonExpired:
		return "Nobody answered before the deadline. Say what you could not do."
	case asks && reason == wire.ReasonRefused:
		return "The tool goes on asking, although it was answered several times."
	case result && reason == wire.ReasonDenied:
		return "The call was ended without a result. It is not known what came of it."
	case result && reason == wire.ReasonExpired:
		return "No result came before the deadline. It is not known what came of the call."
	case confirmation && reason == wire.ReasonDenied:
		return "This tool call is rejected." // ADK's words
	case confirmation && reason == wire.ReasonExpired:
		return "This tool call is rejected: nobody approved it before the deadline."
	case confirmation && reason == wire.ReasonRefused:
		return "The tool goes on asking for approval, although it was given several times."
	case input && reason == wire.ReasonDenied:
		return "The person did not do what the tool's server asked for. Do not call it again now; say what you could not do."
	case input && reason == wire.ReasonExpired:
		return "Nobody did what the tool's server asked for before the deadline, so the tool could not run. Say what you could not do."
	case input && reason == wire.ReasonRefused:
		return "The tool's server goes on asking for input, although it was given several times."
	}
	switch reason {
	case wire.ReasonCancelled:
		return "The call was cancelled by the person."
	case wire.ReasonDenied:
		return "The person did not allow the login that this tool needs. Do not call it again now; say what you could not do."
	case wire.ReasonExpired:
		return "Nobody logged in before the deadline, so this tool could not run. Say what you could not do."
	case wire.ReasonRefused:
		return "The tool's server does not accept the login, although it was given several times."
	default:
		return "The tool failed; it is not known whether the call took effect."
	}
}

// Settle answers a call that will not run again, and marks the request as acted on. It is a local activity.
func (a *Activities) Settle(ctx context.Context, in wire.SettleInput) (wire.SettleResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.SettleResult{}, err
	}
	add := t.append()
	add.Status = string(wire.StateRunning)
	if in.Reason != wire.ReasonCancelled {
		add.Acted = in.Request
	}
	var out wire.SettleResult
	if in.Call != "" {
		call, err := a.Log.Call(ctx, t.row, in.Call)
		if err != nil {
			return out, a.failed(ctx, "find call", err)
		}
		out.Event = call.Answer
		if call.Answer == "" {
			if err := a.within(ctx, t, call); err != nil {
				return out, err
			}
			e := response(t.id(wire.RoleEvent), call.Invocation, call.Agent, call.ID, publicName(call.Name), parents(call), map[string]any{"error": a.settled(ctx, t, in, call)})
			add.Events, add.Answers, out.Event = t.place([]session.NewEvent{e}), map[string]string{call.ID: e.ID}, e.ID
		}
	}
	if _, err := a.Log.Append(ctx, add); err != nil {
		return out, a.failed(ctx, "settle call", err)
	}
	if in.Reason == wire.ReasonCancelled && in.Request != "" {
		if out.Closed, err = a.Requests.WithdrawRequest(ctx, t.row, in.Request); err != nil {
			return out, a.failed(ctx, "withdraw request", err)
		}
	}
	return out, nil
}

func (a *Activities) settled(ctx context.Context, t *attempt, in wire.SettleInput, call session.Call) string {
	message := settled(in.Reason, a.needType(ctx, t, in.Request))
	if in.Reason == wire.ReasonCancelled && call.MayHaveRun() {
		message += " It is not known whether it took effect."
	}
	return message
}

// needType says what a request asked for; a request that cannot be found counts as a login.
func (a *Activities) needType(ctx context.Context, t *attempt, request string) string {
	if request == "" {
		return ""
	}
	r, err := a.Requests.RequestOf(ctx, t.row, request)
	if err != nil {
		return ""
	}
	return r.Need.Type
}

// Mirror writes the run's status to the store, where clients read it. It is a local activity.
func (a *Activities) Mirror(ctx context.Context, in wire.MirrorInput) error {
	t, err := a.begin(ctx)
	if err != nil {
		return err
	}
	if in.Continued {
		if err := a.Log.Continue(ctx, t.row, t.run); err != nil {
			return a.failed(ctx, "go on in another run", err)
		}
		return nil
	}
	if err := a.Log.SetStatus(ctx, t.row, t.run, string(in.State)); err != nil {
		return a.failed(ctx, "write status", err)
	}
	return nil
}

// exchangePoll is how often a request whose deadline has passed is looked at while its login is being completed.
const exchangePoll = time.Second

// Close ends a request at its deadline; the row may say that the login came first.
func (a *Activities) Close(ctx context.Context, in wire.CloseInput) (wire.CloseResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.CloseResult{}, err
	}
	status, err := a.Requests.CloseRequest(ctx, t.row, in.Request)
	switch {
	case err != nil:
		return wire.CloseResult{}, a.failed(ctx, "close request", err)
	case status.Open():
		return wire.CloseResult{}, again("a login is being completed", exchangePoll)
	case status == auth.StatusGranted:
		return wire.CloseResult{Outcome: wire.OutcomeGranted}, nil
	case status == auth.StatusDenied:
		return wire.CloseResult{Outcome: wire.OutcomeDenied}, nil
	default:
		return wire.CloseResult{Outcome: wire.OutcomeExpired}, nil
	}
}

// Finish ends an invocation: calls that are still open get a response, so that the next invocation finds every call
// answered (invariant I9), and an ending other than the normal one gets an event that says so. Without an invocation it
// closes a session that was idle. It is a local activity.
func (a *Activities) Finish(ctx context.Context, in wire.FinishInput) (wire.FinishResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.FinishResult{}, err
	}
	open, err := a.Log.Open(ctx, t.row, in.Invocation, in.Heads)
	if err != nil {
		return wire.FinishResult{}, a.failed(ctx, "find open calls", err)
	}
	add := t.append()
	add.Answers = map[string]string{}
	heads := slices.Clone(in.Heads)
	for i, call := range open {
		message := a.unanswered(ctx, t, call.ID, in)
		if call.MayHaveRun() {
			message += " It is not known whether it took effect."
		}
		if err := a.within(ctx, t, call); err != nil {
			return wire.FinishResult{}, err
		}
		e := response(t.id(wire.RoleAnswer+"/"+strconv.Itoa(i)), call.Invocation, call.Agent, call.ID, publicName(call.Name), parents(call), map[string]any{"error": message})
		e.IsolationScope, t.scope = t.scope, ""
		add.Events, add.Answers[call.ID] = append(add.Events, e), e.ID
		heads = append(heads, e.ID)
	}
	if code, message := a.notice(ctx, t, in); code != "" && in.Invocation != "" {
		add.Events = append(add.Events, session.NewEvent{Kind: session.KindNotice, Parents: heads, Event: session.Event{
			ID: t.id(wire.RoleEvent), InvocationID: in.Invocation, Author: t.def.Root.Name, ErrorCode: code, ErrorMessage: message, TurnComplete: true,
		}})
	}
	t.place(add.Events)
	tips, err := a.Log.Finish(ctx, t.row, session.Ending{
		Run: t.run, Invocation: in.Invocation, Status: in.End, Denied: in.Denied, Closed: in.Closed, Heads: in.Heads, Append: add,
	})
	if err != nil {
		return wire.FinishResult{}, a.failed(ctx, "finish invocation", err)
	}
	return wire.FinishResult{Heads: tips}, nil
}
