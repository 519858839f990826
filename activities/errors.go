package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

// This file alone turns Go errors into those that stand in a history. Their messages are ours, word for word: an error of
// a library may print a URL, a body or a key. Causes go to the log.

// Attempts after which a failing service is reported to the model, or ends the invocation. Attempts that a crash ended
// count too, which is why the workflow's own limits are higher.
const (
	modelAttempts = 8
	toolAttempts  = 5
	listAttempts  = 5
)

func final(message string) error {
	return temporal.NewApplicationErrorWithOptions(message, wire.ErrorFinal, temporal.ApplicationErrorOptions{NonRetryable: true})
}

// again asks for another attempt, after delay if it is not zero.
func again(message string, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(message, wire.ErrorRetry, temporal.ApplicationErrorOptions{NextRetryDelay: delay})
}

// unknownActivity is retryable: another worker, or this one after a deploy, may know the name.
func unknownActivity(name string) error {
	const most = 100
	return temporal.NewApplicationError("no activity "+name[:min(len(name), most)]+" on this worker", wire.ErrorUnknownActivity)
}

// failed classifies a failure of our own parts during an operation.
func (a *Activities) failed(ctx context.Context, operation string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err() //nolint:wrapcheck // the SDK compares it
	case errors.Is(err, session.ErrNotFound):
		a.Slog.WarnContext(ctx, "activity gives up", "operation", operation, "err", err)
		return final(operation + ": not found")
	case errors.Is(err, session.ErrEnded):
		a.Slog.WarnContext(ctx, "activity came back too late", "operation", operation, "err", err)
		return final(operation + ": invocation has ended")
	case errors.Is(err, session.ErrAnswered):
		a.Slog.InfoContext(ctx, "call was answered by another attempt", "operation", operation, "err", err)
		return again(operation+": call was answered meanwhile", 0) // the next attempt finds that answer
	case errors.Is(err, session.ErrConflict), errors.Is(err, session.ErrUnanswered):
		a.Slog.ErrorContext(ctx, "session log is inconsistent", "operation", operation, "err", err)
		return final(operation + ": inconsistent session log")
	default:
		a.Slog.WarnContext(ctx, "activity will be retried", "operation", operation, "err", err)
		return again(operation+": store unavailable", 0)
	}
}

// recovered turns a panic of code that is not ours into *err; its text may hold anything and is kept out of log and history.
func (a *Activities) recovered(ctx context.Context, who string, err *error, as error) {
	if p := recover(); p != nil {
		a.Slog.ErrorContext(ctx, "panic in an activity", "who", who, "panic", fmt.Sprintf("%T", p))
		*err = as
	}
}

// required finds the typed error that starts a wait.
func required(err error) (*auth.RequiredError, bool) {
	var e *auth.RequiredError
	ok := errors.As(err, &e)
	return e, ok
}
