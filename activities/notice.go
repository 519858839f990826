package activities

import (
	"context"

	"tarry/auth"
	"tarry/wire"
)

// unanswered is what a model hears of a call that an invocation leaves open.
func (a *Activities) unanswered(ctx context.Context, t *attempt, call string, in wire.FinishInput) string {
	if in.End == wire.EndSuperseded {
		return "The person sent a new message before this was answered."
	}
	if in.Expired != "" {
		if r, err := a.Requests.RequestOf(ctx, t.row, in.Expired); err == nil && r.Call == call {
			return settled(wire.ReasonExpired, r.Need.Type)
		}
	}
	return "The call was cancelled."
}

// notice is what a person reads of an ending other than the normal one.
func (a *Activities) notice(ctx context.Context, t *attempt, in wire.FinishInput) (code, message string) {
	switch in.End {
	case wire.EndCancelled:
		return "CANCELLED", "The invocation was cancelled."
	case wire.EndSuperseded:
		return "SUPERSEDED", "A new message came before the person had answered; the invocation was ended for it."
	case wire.EndLimit:
		return "LIMIT_REACHED", limitReached(in.Limit, in.Most)
	case wire.EndFailed:
		if in.Expired != "" {
			return "DEADLINE_EXPIRED", a.expired(ctx, t, in.Expired)
		}
		return "FAILED", "The invocation failed."
	default:
		return "", ""
	}
}

func limitReached(limit, most string) string {
	const (
		invocation = "The invocation reached its limit of "
		session    = "The session reached its limit of "
		goesNoMore = " and answers no further message."
	)
	switch limit {
	case "tokens":
		return invocation + most + " tokens and was ended."
	case "duration":
		return invocation + most + " of work and was ended."
	case "session.model_calls":
		return session + most + " model calls" + goesNoMore
	case "session.tokens":
		return session + most + " tokens" + goesNoMore
	case "session.duration":
		return session + most + " of work" + goesNoMore
	case "model_calls":
		return invocation + most + " model calls and was ended."
	default:
		return invocation + "model calls and was ended."
	}
}

// expired names what nobody did before the deadline.
func (a *Activities) expired(ctx context.Context, t *attempt, request string) string {
	what := "Nobody answered"
	if r, err := a.Requests.RequestOf(ctx, t.row, request); err == nil {
		of := r.Need.Tool
		if of == "" {
			of = r.Need.Toolset
		}
		switch {
		case r.Need.Login():
			what = "Nobody logged in for " + of
		case r.Need.Type == auth.TypeConfirmation:
			what = "Nobody approved a call of " + of
		case r.Need.Type == auth.TypeResult:
			what = "Nobody said what came of a call of " + of
		default:
			what = "Nobody answered what " + of + " asked for"
		}
	}
	return what + " before the deadline, and the agent's on_deadline is fail."
}
