package activities

import (
	"context"

	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

// reminderKey is where an event says in its custom metadata that it is a reminder, and of which request.
const reminderKey = "tarry_reminder"

// Remind tells whoever follows the session that a request is still open, by an event that no model sees and that asks nobody
// anew: a client that opens a page for each question would open it twice. It is a local activity.
func (a *Activities) Remind(ctx context.Context, in wire.RemindInput) error {
	t, err := a.begin(ctx)
	if err != nil {
		return err
	}
	err = a.Requests.Remind(ctx, t.append(), in.Request, func(r auth.Request) session.NewEvent {
		a.Slog.InfoContext(ctx, "still waiting for a person", "request_id", r.ID, "session_id", t.row.ID, "tool", r.Need.Tool, "reminders", r.Reminders)
		return session.NewEvent{Event: session.Event{
			ID: t.id(wire.RoleEvent), InvocationID: r.Invocation, Author: r.Agent, Branch: t.def.Branch(r.Agent),
			Custom: map[string]any{reminderKey: map[string]any{"request": r.ID, "number": r.Reminders}},
		}}
	})
	if err != nil {
		return a.failed(ctx, "remind", err)
	}
	return nil
}

// Queued says whether a message waits to interrupt an invocation. It is a local activity.
func (a *Activities) Queued(ctx context.Context, in wire.QueuedInput) (wire.QueuedResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.QueuedResult{}, err
	}
	message, answer, err := a.Requests.Queued(ctx, t.row, in.Invocation)
	if err != nil {
		return wire.QueuedResult{}, a.failed(ctx, "look for messages", err)
	}
	return wire.QueuedResult{Message: message, Answer: answer}, nil
}
