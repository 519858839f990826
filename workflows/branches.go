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

// fork is the threads that one thread has given way to. The last of them to end goes on as that one.
type fork struct {
	left int
	gone bool // the last one has left too
}

// fork replaces the calling thread by n.
func (b *branches) fork(n int) *fork {
	if n > 0 {
		b.active += n - 1
	}
	return &fork{left: n}
}

// join goes on with the thread that was replaced.
func (b *branches) join(f *fork) {
	if f.gone {
		b.active++
	}
}

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

// changeLast: the last of the threads that end is not taken for gone, and those that end for the next run for no news.
const changeLast = "last"

// leave ends a thread; those that remain may all be waiting now.
func (s *session) leave(ctx workflow.Context, f *fork) {
	f.left--
	if f.left == 0 {
		told := s.branch.waiting > 0 && s.branch.waiting >= s.branch.active-1 && ctx.Err() == nil // before there was this change
		if !told || workflow.GetVersion(ctx, changeLast, workflow.DefaultVersion, 1) == 1 {
			return
		}
		f.gone = true
	}
	s.branch.active--
	if s.branch.waiting+s.branch.asleep > 0 {
		s.park(ctx)
	}
	if s.branch.waiting > 0 {
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
	if s.drained.IsReady() && workflow.GetVersion(ctx, changeLast, workflow.DefaultVersion, 1) == 1 {
		return // waits that end for the next run are no news; it tells of them
	}
	s.setState(ctx, state)
	if err := callMirror(ctx, wire.MirrorInput{State: state}); err != nil {
		s.log.Warn("mirror status", "err", err)
	}
}
