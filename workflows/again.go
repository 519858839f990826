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
//
// A run that has done nothing yet goes on whatever its length: a limit that is too small must not make runs without end.
func (s *session) due(ctx workflow.Context) bool {
	if ctx.Err() != nil || s.cancelled || s.branch.active > 1 || s.branch.waiting > 0 {
		return false
	}
	if s.continuing {
		return true
	}
	info := workflow.GetInfo(ctx)
	limit := s.in.Timing.ContinueAfter
	return s.worked && (info.GetContinueAsNewSuggested() || limit > 0 && info.GetCurrentHistoryLength() >= limit)
}

// continueAsNew ends the run and hands over what the next one needs. Unread signals are read first: they would be lost.
// One of them may cancel the session; then there is no next run, and nil is returned.
func (s *session) continueAsNew(ctx workflow.Context) error {
	s.signals.drain(s)
	if s.cancelled {
		return nil
	}
	next := s.in
	s.carry.Early = s.waits.early
	s.carry.Runs++
	next.Carry = &s.carry
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowSession, next)
}
