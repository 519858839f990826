package activities

import (
	"context"
	"errors"
	"fmt"

	"tarry/auth"
	"tarry/session"
	"tarry/tools"
)

// inputRequired finds the typed error of a server that wants something of a person.
func inputRequired(err error) (*tools.InputRequiredError, bool) {
	var e *tools.InputRequiredError
	ok := errors.As(err, &e)
	return e, ok
}

// inputQuestion asks on behalf of one call: whatever it is about, no other call is served by the answer.
func inputQuestion(t *attempt, call session.Call, e *tools.InputRequiredError) question {
	n := needOf(t, call, auth.TypeInput)
	n.Slot = auth.InputSlot(t.row.Owner, n.Server, call.ID)
	q := auth.Question(*e)
	return question{need: n, input: &q}
}

// needOf is what one call needs of a person besides a login; its slot is left to the caller.
func needOf(t *attempt, call session.Call, kind string) auth.Need {
	return auth.Need{Type: kind, Key: "tarry_" + kind + "_" + call.ID, Tool: call.Name, Toolset: call.Toolset, Server: serverOf(t, call)}
}

// serverOf is the URL of a call's MCP server; empty for other tools.
func serverOf(t *attempt, call session.Call) string {
	if def := t.def.Toolset(call.Toolset); def != nil {
		return def.URL
	}
	return ""
}

// resume finds what a person did for a call that asked before. It is found in the store, not in the input: a login may
// have come between the answer and the call.
func (a *Activities) resume(ctx context.Context, t *attempt, call session.Call, scrub *auth.Scrubber) (*tools.Resume, error) {
	if call.Asking == "" || a.Inputs == nil {
		return nil, nil //nolint:nilnil // nobody was asked
	}
	r, ok, err := a.Requests.Answered(ctx, t.row, auth.InputSlot(t.row.Owner, serverOf(t, call), call.ID))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", tools.ErrNotExecuted, err)
	case !ok:
		return nil, nil //nolint:nilnil // it was asked for a login
	}
	q, answers, err := a.Inputs.Answers(r)
	if err != nil {
		return nil, &tools.Error{Message: "What the person answered cannot be read.", Cause: err}
	}
	scrub.Add(auth.NewSecret(q.State))
	out := &tools.Resume{State: q.State, Answers: answers}
	for _, in := range q.Inputs {
		if in.Mode == auth.InputURL && (q.Plain || answers[in.Key].Action == auth.InputAccept) {
			out.Visited = append(out.Visited, in.URL)
		}
	}
	return out, nil
}
