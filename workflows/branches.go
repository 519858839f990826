package workflows

import (
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// branches counts the threads of an invocation, to know when every one of them waits: that is when a client's stream may
// end and the run costs nothing.
type branches struct {
	active  int // that can run or wait
	waiting int // that wait
	inputs  int // that wait for what a server wants besides a login
	confirm int // that wait for an approval
	asleep  int // that wait for a time
}

// fork replaces the calling thread by n.
func (b *branches) fork(n int) { b.active += n - 1 }

// state is what is waited for: a login if there is one among it, else an approval.
func (b *branches) state() wire.State {
	switch {
	case b.inputs == b.waiting:
		return wire.StateWaitingInput
	case b.inputs+b.confirm == b.waiting:
		return wire.StateWaitingConfirmation
	default:
		return wire.StateWaitingCredential
	}
}

// leave ends a thread; those that remain may all be waiting now.
func (s *session) leave(ctx workflow.Context) {
	s.branch.active--
	if s.branch.waiting > 0 {
		s.park(ctx)
		s.mirror(ctx)
	}
}

// mirror tells the store once nothing but waits is left. Running again needs no telling: the activity that acts on the
// outcome writes it.
func (s *session) mirror(ctx workflow.Context) {
	state := s.branch.state()
	if ctx.Err() != nil || s.branch.waiting < s.branch.active || s.state == state {
		return
	}
	s.setState(ctx, state)
	if err := callMirror(ctx, wire.MirrorInput{State: state}); err != nil {
		s.log.Warn("mirror status", "err", err)
	}
}
