package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// signals are read by one coroutine each, into state that the rest of the workflow awaits.
type signals struct {
	message, resolved, cancel, again workflow.ReceiveChannel
}

func (s *session) listen(ctx workflow.Context) {
	s.signals = signals{
		message:  workflow.GetSignalChannel(ctx, wire.SignalMessage),
		resolved: workflow.GetSignalChannel(ctx, wire.SignalResolved),
		cancel:   workflow.GetSignalChannel(ctx, wire.SignalCancel),
		again:    workflow.GetSignalChannel(ctx, wire.SignalContinueAsNew),
	}
	workflow.GoNamed(ctx, "signals", func(ctx workflow.Context) {
		for ctx.Err() == nil {
			selector := workflow.NewSelector(ctx)
			selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
			for _, ch := range []workflow.ReceiveChannel{s.signals.message, s.signals.resolved, s.signals.cancel, s.signals.again} {
				selector.AddReceive(ch, func(workflow.ReceiveChannel, bool) { s.signals.drain(s) })
			}
			selector.Select(ctx)
		}
	})
}

// drain handles every signal that has arrived. It is called before a run ends too: a signal that is not read then would
// be lost with the run.
func (c *signals) drain(s *session) {
	var message wire.Message
	for c.message.ReceiveAsync(&message) {
		if message.Inbox != "" && !slices.Contains(s.carry.Taken, message.Inbox) && !slices.Contains(s.carry.Pending, message.Inbox) {
			s.carry.Pending = append(s.carry.Pending, message.Inbox)
		}
		message = wire.Message{}
	}
	var resolved wire.Resolved
	for c.resolved.ReceiveAsync(&resolved) {
		s.waits.resolve(resolved)
		resolved = wire.Resolved{}
	}
	var cancel wire.Cancel
	for c.cancel.ReceiveAsync(&cancel) {
		s.cancel(cancel)
		cancel = wire.Cancel{}
	}
	for c.again.ReceiveAsync(nil) {
		s.continuing = true
	}
}

// cancel ignores stale ids: a reset applies old signals again.
func (s *session) cancel(c wire.Cancel) {
	inv := s.carry.Invocation
	switch {
	case c.Invocation == "":
		s.cancelled = true
	case inv == nil || inv.ID != c.Invocation:
		s.log.Info("cancel of an invocation that does not run", "invocation", c.Invocation)
		return
	}
	if inv != nil && s.stop != nil {
		s.stop()
	}
}
