package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// signals are read into state that the rest of the workflow awaits.
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
	// Not a selector: one that is blocked takes a signal off its channel before its coroutine runs, so that a run which
	// drains and ends in between would lose it.
	workflow.GoNamed(ctx, "signals", func(ctx workflow.Context) {
		for workflow.Await(ctx, s.signals.any) == nil {
			s.signals.drain(s)
			s.heard = true
			s.park(ctx)
		}
	})
}

func (c *signals) any() bool {
	return c.message.Len()+c.resolved.Len()+c.cancel.Len()+c.again.Len() > 0
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

// maxCancelled bounds the invocations that are to be cancelled once they begin.
const maxCancelled = 100

// cancel remembers which invocation it is for: that one may still be queued, or be about to move to a new run. An id that
// has ended never comes again, so a stale one (a reset applies old signals again) does nothing.
func (s *session) cancel(c wire.Cancel) {
	if c.Call != "" {
		s.stopCall(c.Call)
		return
	}
	inv := s.carry.Invocation
	if c.Invocation == "" {
		s.cancelled = true
	} else if !slices.Contains(s.carry.Cancelled, c.Invocation) {
		s.carry.Cancelled = append(s.carry.Cancelled, c.Invocation)
		if extra := len(s.carry.Cancelled) - maxCancelled; extra > 0 {
			s.carry.Cancelled = slices.Delete(s.carry.Cancelled, 0, extra)
		}
	}
	if inv != nil && s.stop != nil && s.cancels(inv) {
		s.stop()
	}
}

func (s *session) cancels(inv *wire.Invocation) bool {
	return s.cancelled || slices.Contains(s.carry.Cancelled, inv.ID)
}
