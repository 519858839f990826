package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// enclosing is the key of the calls that a coroutine runs behind, the outermost first: those of agents that serve as tools,
// and the one at hand.
type enclosing struct{}

// stoppable runs a call in a context of its own, which a person may cancel, and then answers it, so that the model goes on
// with the other results. What a call runs behind it (AgentTool) is cancelled and answered with it.
func (s *session) stoppable(ctx workflow.Context, t *thread, n agent.Node, o *wire.OpenCall) error {
	outer, _ := ctx.Value(enclosing{}).([]string)
	calls := append(slices.Clone(outer), o.ID)
	own, stop := workflow.WithCancel(workflow.WithValue(ctx, enclosing{}, calls))
	defer stop()
	s.stops[o.ID] = stop
	defer delete(s.stops, o.ID)
	if s.stopped(o.ID) {
		stop()
	}
	err := s.call(own, t, n, o)
	if !temporal.IsCanceledError(err) || s.cancels(s.carry.Invocation) || !slices.ContainsFunc(calls, s.stopped) {
		return err
	}
	clean, _ := workflow.NewDisconnectedContext(own)
	if err := s.settleStopped(clean, o); err != nil {
		return err
	}
	return ctx.Err() // what runs behind a call that is cancelled ends with it
}

func (s *session) stopped(call string) bool {
	return slices.Contains(s.carry.Invocation.Cancelled, call)
}

// settleStopped answers a call that was cancelled. Its request is closed unless somebody else waits for it too; whoever was
// about to is told, and asks again.
func (s *session) settleStopped(ctx workflow.Context, o *wire.OpenCall) error {
	in := wire.SettleInput{Call: o.ID, Reason: wire.ReasonCancelled}
	if s.waits.waiters[o.Request] == 0 {
		in.Request = o.Request
	}
	out, err := callSettle(ctx, in)
	if err != nil {
		return err
	}
	o.Event, o.Asked = out.Event, wire.Asked{}
	s.setState(ctx, wire.StateRunning) // as the store has it now; what still waits is mirrored again
	if out.Closed {
		s.waits.resolve(wire.Resolved{Request: in.Request, Outcome: wire.OutcomeCancelled})
	}
	return nil
}

// stopCall cancels one call. It is remembered: the call may be about to begin, or to move to a new run. A call of an invocation
// that has ended never comes again, so a stale id (a reset applies old signals again) does nothing.
func (s *session) stopCall(call string) {
	inv := s.carry.Invocation
	if inv == nil || slices.Contains(inv.Cancelled, call) {
		return
	}
	inv.Cancelled = append(inv.Cancelled, call)
	if extra := len(inv.Cancelled) - maxCancelled; extra > 0 {
		inv.Cancelled = slices.Delete(inv.Cancelled, 0, extra)
	}
	if stop := s.stops[call]; stop != nil {
		stop()
	}
}
