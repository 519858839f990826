package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// errContinue unwinds the agent tree to a new run; frames hold where each agent stands.
var errContinue = errors.New("continue as new")

// due says whether the run should end here: at a turn boundary of the only thread, with no wait open. An invocation that
// forked or waits goes on until the next such boundary.
func (s *session) due(ctx workflow.Context) bool {
	if s.branch.active > 1 || s.branch.waiting > 0 {
		return false
	}
	info := workflow.GetInfo(ctx)
	limit := s.in.Timing.ContinueAfter
	return s.continuing || info.GetContinueAsNewSuggested() || limit > 0 && info.GetCurrentHistoryLength() >= limit
}

// continueAsNew ends the run and hands over what the next one needs. Unread signals are read first: they would be lost.
func (s *session) continueAsNew(ctx workflow.Context) error {
	s.signals.drain(s)
	if s.cancelled {
		if s.carry.Invocation != nil {
			return s.finish(ctx, s.carry.Invocation, wire.EndCancelled)
		}
		return nil
	}
	next := s.in
	s.carry.Early = s.waits.early
	s.carry.Runs++
	next.Carry = &s.carry
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowSession, next)
}
