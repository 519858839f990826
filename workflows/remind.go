package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// Reminders are counted by request, not by call: calls that wait for the same one remind of it together. Where they stand is
// part of the invocation, so that the next run goes on with them.

// reminder returns where the reminders of a request stand; the first is due after a whole interval.
func (s *session) reminder(ctx workflow.Context, n agent.Node, request string) *wire.Reminder {
	inv := s.carry.Invocation
	i := slices.IndexFunc(inv.Reminders, func(r wire.Reminder) bool { return r.Request == request })
	if i < 0 {
		i = len(inv.Reminders)
		inv.Reminders = append(inv.Reminders, wire.Reminder{Request: request, Next: workflow.Now(ctx).Add(n.Remind)})
	}
	return &inv.Reminders[i]
}

// reminded forgets the reminders of a request that has an outcome.
func (s *session) reminded(request string) {
	inv := s.carry.Invocation
	inv.Reminders = slices.DeleteFunc(inv.Reminders, func(r wire.Reminder) bool { return r.Request == request })
}

// nextReminder is how long it is until the next reminder; ok says that there is one before the deadline.
func (s *session) nextReminder(ctx workflow.Context, n agent.Node, asked wire.Asked) (left time.Duration, ok bool) {
	if n.Remind <= 0 {
		return 0, false
	}
	next := s.reminder(ctx, n, asked.Request).Next
	return max(next.Sub(workflow.Now(ctx)), 0), asked.Deadline.IsZero() || next.Before(asked.Deadline)
}

// remind tells the person again, unless another call that waits for the same request has just done so. It is news of this run: a
// wait of years continues as new.
func (s *session) remind(ctx workflow.Context, n agent.Node, asked wire.Asked) error {
	r := s.reminder(ctx, n, asked.Request)
	now := workflow.Now(ctx)
	if now.Before(r.Next) {
		return nil
	}
	r.Sent++
	if r.Next = r.Next.Add(n.Remind); !now.Before(r.Next) { // nobody was there to remind for longer than that
		r.Next = now.Add(n.Remind)
	}
	s.branch.waiting-- // no run ends while its activity is on its way
	err := callRemind(ctx, wire.RemindInput{Request: asked.Request, Number: r.Sent})
	s.branch.waiting++
	if err != nil && ctx.Err() == nil {
		s.log.Warn("remind", "request_id", asked.Request, "err", err)
		err = nil
	}
	s.heard = true
	s.park(ctx)
	s.mirror(ctx)
	return err
}
