package stream

import (
	"context"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
)

// manyRequests bounds the look at an owner's requests; those of the current invocation are the newest.
const manyRequests = 200

// pending says whether the invocation of row really waits. Its status goes on saying so from the moment a login is
// there until the run has acted on it, and a client that answers in between wants to see what follows.
func pending(ctx context.Context, log session.Log, requests Requests, row session.Session, view []*session.Record) (bool, error) {
	if requests == nil {
		return true, nil
	}
	all, err := requests.Requests(ctx, row.Owner, false, manyRequests)
	if err != nil {
		return false, fmt.Errorf("list requests: %w", err)
	}
	all = slices.DeleteFunc(all, func(r auth.Request) bool { return r.WorkflowID != row.WorkflowID || r.Invocation != row.Invocation })
	open := slices.ContainsFunc(all, func(r auth.Request) bool { return r.Status == auth.StatusPending })
	for _, r := range all {
		switch r.Status {
		case auth.StatusPending, auth.StatusCancelled:
		case auth.StatusExchanging: // over in seconds
			return false, nil
		case auth.StatusGranted, auth.StatusDenied, auth.StatusExpired:
			if done, err := acted(ctx, log, row, r, all, view); err != nil || !done {
				return false, err
			}
		}
	}
	return open, nil
}

// acted says whether the run has acted on the outcome of r: the call that asked is answered, or has asked anew.
func acted(ctx context.Context, log session.Log, row session.Session, r auth.Request, all []auth.Request, view []*session.Record) (bool, error) {
	i := slices.IndexFunc(view, func(e *session.Record) bool { return Asks(e, r.ID) })
	if i < 0 {
		return true, nil // asked by a run that a reset has replaced
	}
	if r.Call == "" { // a listing leaves no event: the agent's next one follows when all its toolsets are answered
		return slices.ContainsFunc(view[i+1:], func(e *session.Record) bool { return e.Author == r.Agent && e.Kind != session.KindReminder }) ||
			slices.ContainsFunc(all, func(o auth.Request) bool { return o.Status == auth.StatusPending && o.Call == "" && o.Agent == r.Agent }), nil
	}
	call, err := log.Call(ctx, row, r.Call)
	if err != nil {
		return false, fmt.Errorf("call of request: %w", err)
	}
	if r.Need.Type == auth.TypeResult { // nobody asks anew for it
		return call.Answer != "", nil
	}
	return call.Answer != "" || (call.Asking != view[i].ID && call.Asking != ""), nil
}

// Asks says whether e is the event that asks request.
func Asks(e *session.Record, request string) bool {
	for _, call := range e.Calls() {
		if call.ID == request {
			return e.Kind == session.KindRequest && agent.Reserved(call.Name) || slices.Contains(e.LongRunningToolIDs, request)
		}
	}
	return false
}
