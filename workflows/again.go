package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// errContinue unwinds the agent tree to a new run; frames hold where each agent stands.
var errContinue = errors.New("continue as new")

// due says whether the run should end here, at a turn boundary of a thread. The others end at theirs, and where all that is
// left waits, the waits do; see park.
//
// A run that has done nothing yet goes on whatever its length: a limit that is too small must not make runs without end.
func (s *session) due(ctx workflow.Context) bool {
	if ctx.Err() != nil || s.cancelled {
		return false
	}
	return s.continuing || s.worked && s.long(ctx)
}

// long says whether the history is as long as it should get.
func (s *session) long(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	limit := s.in.Timing.ContinueAfter
	return info.GetContinueAsNewSuggested() || limit > 0 && info.GetCurrentHistoryLength() >= limit
}

// changeDrain: runs that end although calls wait.
const changeDrain = "drain"

// park ends the run where nothing but waits is left and it is due. No activity is in flight then; what is waited for stands
// in the frames. A wait begins no new run by itself: only progress or a signal of this run makes it due.
func (s *session) park(ctx workflow.Context) {
	if s.drained.IsReady() || s.over.end != "" || s.branch.active == 0 || s.branch.waiting+s.branch.asleep < s.branch.active || ctx.Err() != nil || s.cancelled {
		return
	}
	due := s.continuing || (s.worked || s.heard) && s.long(ctx)
	if due && workflow.GetVersion(ctx, changeDrain, workflow.DefaultVersion, 1) == 1 {
		s.drain.SetValue(nil)
	}
}

// continueAsNew ends the run and hands over what the next one needs. Unread signals are read first: they would be lost.
// One of them may cancel the session, or Temporal the run meanwhile; then there is no next run, and nil is returned.
func (s *session) continueAsNew(ctx workflow.Context) error {
	if inv := s.carry.Invocation; inv != nil {
		if err := keepJournals(ctx, &inv.Frame); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if temporal.IsCanceledError(ctx.Err()) { // the invocation is ended first
		return nil
	}
	s.signals.drain(s)
	if s.cancelled {
		return nil
	}
	next := s.in
	s.carry.Early = s.waits.carried()
	s.carry.Runs++
	next.Carry = &s.carry
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowSession, next)
}

// changeGoOn: a run says that it goes on for another.
const changeGoOn = "go_on"

// goOn tells the store that this run is no reset, where several lines of events lead to where it stands: what is said next
// follows one of them, and the others would be taken for what a run said that was replaced.
func (s *session) goOn(ctx workflow.Context, inv *wire.Invocation) error {
	if s.worked || s.in.Carry == nil || s.in.Carry.Invocation == nil || !forked(&inv.Frame) {
		return nil
	}
	if workflow.GetVersion(ctx, changeGoOn, workflow.DefaultVersion, 1) != 1 {
		return nil
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return callMirror(ctx, wire.MirrorInput{Continued: true})
}

func forked(f *wire.Frame) bool {
	return f != nil && (len(f.Branches) > 0 || len(f.Calls) > 0 || forked(f.Sub))
}
