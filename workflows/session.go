package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// Session is the workflow of one session, registered as [wire.WorkflowSession]. It returns when a job's invocation has
// ended, when the session is cancelled, or with a continue-as-new error.
func (a Agents) Session(ctx workflow.Context, in wire.SessionInput) error {
	s, err := newSession(ctx, in)
	if err != nil {
		return err
	}
	s.custom = a
	s.listen(ctx)
	return s.run(ctx)
}

type session struct {
	custom  Agents
	in      wire.SessionInput
	carry   wire.Carry
	log     log.Logger
	signals signals
	waits   waits
	branch  branches
	over    over
	since   time.Time // when the invocation began to work, or went on after a wait; zero while it waits, or where nobody asks

	state      wire.State
	agent      string
	cancelled  bool
	closed     bool // the store knows that the session takes no further message
	continuing bool
	worked     bool            // this run has made progress
	heard      bool            // this run has had a signal
	drained    workflow.Future // the run is to end although calls wait
	drain      workflow.Settable
	stop       workflow.CancelFunc            // cancels the invocation that runs
	stops      map[string]workflow.CancelFunc // cancel the calls that run or wait
}

func newSession(ctx workflow.Context, in wire.SessionInput) (*session, error) {
	if in.Plan.Root.Name == "" {
		return nil, temporal.NewNonRetryableApplicationError("start input has no plan", wire.ErrorFinal, nil)
	}
	s := &session{in: in, state: wire.StateIdle, log: workflow.GetLogger(ctx)}
	if in.Carry != nil {
		s.carry = *in.Carry
	}
	s.waits.open = map[string]workflow.Settable{}
	s.waits.futures = map[string]workflow.Future{}
	s.waits.outcomes = map[string]wire.Outcome{}
	s.waits.waiters = map[string]int{}
	s.stops = map[string]workflow.CancelFunc{}
	s.drained, s.drain = workflow.NewFuture(ctx)
	s.waits.early = slices.Clone(s.carry.Early)
	if err := workflow.SetQueryHandler(ctx, wire.QueryStatus, s.status); err != nil {
		return nil, err
	}
	return s, nil
}

// run is the sequence of a session: message, invocation, message, …
func (s *session) run(ctx workflow.Context) error {
	for {
		if s.carry.Invocation == nil {
			if err := s.next(ctx); err != nil {
				return err
			}
			if s.carry.Invocation == nil {
				break
			}
		}
		again, err := s.invoke(ctx)
		if err != nil {
			return err
		}
		if !again && (s.in.Mode == wire.ModeJob || s.cancelled) {
			break
		}
		if again || s.due(ctx) {
			if err := s.continueAsNew(ctx); err != nil {
				return err
			}
		}
	}
	if s.cancelled && !s.closed {
		if err := s.finish(ctx, &wire.Invocation{}, wire.EndCancelled); err != nil {
			return err
		}
	}
	s.signals.drain(s)
	return ctx.Err()
}

// next waits for a message and takes it. It leaves no invocation when the session was cancelled.
func (s *session) next(ctx workflow.Context) error {
	for {
		s.setState(ctx, wire.StateIdle)
		err := workflow.Await(ctx, func() bool { return len(s.carry.Pending) > 0 || s.cancelled || s.continuing })
		switch {
		case err != nil:
			return err
		case s.cancelled:
			return nil
		case s.continuing:
			if err := s.continueAsNew(ctx); err != nil {
				return err
			}
			continue
		}
		announced := slices.Clone(s.carry.Pending)
		took, err := callTake(s.activityCtx(ctx), wire.TakeInput{Heads: s.carry.Heads})
		if err != nil {
			return err
		}
		s.worked = true
		if took.Inbox == "" && workflow.GetVersion(ctx, changeRetake, workflow.DefaultVersion, 1) == 1 {
			original := workflow.GetInfo(ctx).OriginalRunID
			if took, err = callTake(s.activityCtx(ctx), wire.TakeInput{Heads: s.carry.Heads, Announced: announced, Original: original}); err != nil {
				return err
			}
		}
		if took.Inbox == "" { // announced twice; what was announced meanwhile is still to be taken
			s.carry.Pending = slices.DeleteFunc(s.carry.Pending, func(id string) bool { return slices.Contains(announced, id) })
			continue
		}
		s.taken(took.Inbox)
		s.carry.Heads = []string{took.Event}
		s.carry.Invocation = &wire.Invocation{ID: took.Invocation, Frame: wire.Frame{Agent: took.Agent}}
		return nil
	}
}

// changeRetake: a message that is not there is looked for among those that a run before a reset has taken.
const changeRetake = "retake"

// maxTaken bounds the list of inbox ids that is carried: a signal is redelivered within seconds, not after 1,000 others.
const maxTaken = 1000

func (s *session) taken(id string) {
	s.carry.Pending = slices.DeleteFunc(s.carry.Pending, func(p string) bool { return p == id })
	s.carry.Taken = append(s.carry.Taken, id)
	if extra := len(s.carry.Taken) - maxTaken; extra > 0 {
		s.carry.Taken = slices.Delete(s.carry.Taken, 0, extra)
	}
}

// invoke runs the agent tree once and writes how it ended; again says that it did not end but goes on in another run.
func (s *session) invoke(ctx workflow.Context) (again bool, err error) {
	inv := s.carry.Invocation
	if inv.Lists == nil {
		inv.Lists = map[string]string{}
	}
	work, cancel := workflow.WithCancel(ctx)
	s.stop, s.over = cancel, over{}
	defer cancel()
	if s.cancels(inv) { // while the message was queued or being taken, or as the last run ended
		cancel()
	}
	s.branch = branches{active: 1}
	s.setState(ctx, wire.StateRunning)
	if l, ok := s.exhaustedSession(); ok {
		s.end(over{end: wire.EndLimit, limit: l})
	}
	if err := s.goOn(ctx, inv); err != nil {
		return false, err
	}
	s.meter(work)
	s.interrupts(work)
	_, err = s.agentRun(work, s.rootThread(), s.in.Plan.Root, &inv.Frame)
	s.measure(ctx)
	if errors.Is(err, errContinue) { // also where a limit is found as the last thread ends: the next run finds it too
		return true, nil
	}
	end := s.over.end // also where a custom agent takes its children's errors for its own affair
	if end == "" {
		end = ending(err)
	}
	cancel()
	s.waits.abandon()
	if err := s.finish(ctx, inv, end); err != nil {
		return false, err
	}
	s.over = over{}
	s.carry.Cancelled = slices.DeleteFunc(s.carry.Cancelled, func(id string) bool { return id == inv.ID })
	s.carry.Invocation = nil
	return false, nil
}

// finish uses a context that cancellation does not reach: an invocation that was cancelled must still be written down.
func (s *session) finish(ctx workflow.Context, inv *wire.Invocation, end string) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	closed := s.in.Mode == wire.ModeJob || s.cancelled
	out, err := callFinish(ctx, wire.FinishInput{
		Invocation: inv.ID,
		End:        end,
		Heads:      s.carry.Heads,
		Denied:     inv.Denied,
		Closed:     closed,
		Limit:      s.over.limit.key,
		Most:       s.over.limit.most,
		Expired:    s.over.expired,
	})
	if err != nil {
		return err
	}
	s.closed = closed
	if len(out.Heads) > 0 {
		s.carry.Heads = out.Heads
	}
	s.setState(ctx, wire.StateIdle)
	return nil
}

func ending(err error) string {
	var ended *endError
	switch {
	case err == nil:
		return wire.EndDone
	case temporal.IsCanceledError(err):
		return wire.EndCancelled
	case errors.As(err, &ended):
		return ended.end
	default:
		return wire.EndFailed
	}
}

// endError ends the invocation from anywhere in the tree.
type endError struct{ end string }

func (e *endError) Error() string { return "invocation ends: " + e.end }
