package activities

import (
	"context"

	"tarry/wire"
)

// Take moves the next message of the inbox into the log.
func (a *Activities) Take(ctx context.Context, in wire.TakeInput) (wire.TakeResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.TakeResult{}, err
	}
	record, inbox, err := a.Log.Take(ctx, t.row, t.run, t.id(wire.RoleEvent), in.Heads)
	if err != nil {
		return wire.TakeResult{}, a.failed(ctx, "take message", err)
	}
	if record == nil {
		return wire.TakeResult{}, nil
	}
	return wire.TakeResult{Inbox: inbox, Invocation: record.InvocationID, Event: record.ID}, nil
}
