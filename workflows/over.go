package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// over says why an invocation is ended from within: by a policy of its definition, not by a person who cancels it.
type over struct {
	end     string // one of wire's endings; empty while it goes on
	limit   limit
	expired string // the request whose deadline has passed
}

// end ends the invocation that runs: every thread of it is cancelled, as if a person had done it, and what finishes it says
// why. The first reason counts.
func (s *session) end(o over) {
	if inv := s.carry.Invocation; s.over.end == "" && inv != nil && !s.cancels(inv) {
		s.over = o
		s.stop()
	}
}

// answersComing is how often an answer that is on its way is looked for, when a message waits to interrupt.
const answersComing = 10 * time.Second

// interrupts ends the invocation when a message has come and nothing of it runs, if the plan says so. What the store knows
// decides: an answer that a person gave before the message is acted on first.
func (s *session) interrupts(ctx workflow.Context) {
	if s.in.Plan.OnMessage != agent.MessageInterrupt || s.in.Mode == wire.ModeJob {
		return
	}
	workflow.GoNamed(ctx, "interrupts", func(ctx workflow.Context) {
		for until(ctx, s.interruptible) {
			announced := len(s.carry.Pending)
			queued, err := callQueued(ctx, wire.QueuedInput{Invocation: s.carry.Invocation.ID})
			switch {
			case err != nil:
				return
			case !s.interruptible(): // it goes on meanwhile
			case !queued.Message: // announced twice, or taken before a reset
				s.carry.Pending = s.carry.Pending[announced:]
			case !queued.Answer:
				s.end(over{end: wire.EndSuperseded})
				return
			default:
				_, err = workflow.AwaitWithTimeout(ctx, answersComing, func() bool { return !s.interruptible() })
			}
			if err != nil {
				return
			}
		}
	})
}

// until blocks until the condition holds; false says that ctx was cancelled, which Await does not look at where it holds.
func until(ctx workflow.Context, condition func() bool) bool {
	return workflow.Await(ctx, condition) == nil && ctx.Err() == nil
}

func (s *session) interruptible() bool {
	return len(s.carry.Pending) > 0 && !s.branch.working() && !s.waits.heard() && !s.drained.IsReady()
}
