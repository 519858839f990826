package workflows

import (
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// limit is a limit of the plan, by its key in the definition, as a client reads it.
type limit struct{ key, most string }

// exhausted returns the limit that allows no further model call; ok says that there is one.
func (s *session) exhausted() (limit, bool) {
	inv, l := s.carry.Invocation, s.in.Plan.Limits
	calls := l.ModelCalls
	if calls == 0 {
		calls = agent.DefaultModelCalls
	}
	if inv.ModelCalls >= calls {
		return limit{"model_calls", strconv.Itoa(calls)}, true
	}
	if l.Tokens > 0 && inv.Tokens >= l.Tokens {
		return limit{"tokens", strconv.Itoa(l.Tokens)}, true
	}
	return s.exhaustedSession()
}

// exhaustedSession is the same for the limits of the session.
func (s *session) exhaustedSession() (limit, bool) {
	spent, l := s.carry.Spent, s.in.Plan.Limits.Session
	switch {
	case l.ModelCalls > 0 && spent.ModelCalls >= l.ModelCalls:
		return limit{"session.model_calls", strconv.Itoa(l.ModelCalls)}, true
	case l.Tokens > 0 && spent.Tokens >= l.Tokens:
		return limit{"session.tokens", strconv.Itoa(l.Tokens)}, true
	case l.Duration > 0 && spent.Worked >= l.Duration:
		return limit{"session.duration", l.Duration.String()}, true
	}
	return limit{}, false
}

// spend counts a model call, over the whole tree. It is asked before each: a branch overshoots by what its last call has used.
func (s *session) spend() error {
	if l, ok := s.exhausted(); ok {
		s.end(over{end: wire.EndLimit, limit: l})
		return &endError{wire.EndLimit}
	}
	s.carry.Invocation.ModelCalls++
	if s.in.Plan.Limits.Session.ModelCalls > 0 {
		s.carry.Spent.ModelCalls++
	}
	return nil
}

// used counts what a model call has used.
func (s *session) used(tokens int) {
	if l := s.in.Plan.Limits; l.CountsTokens() {
		s.carry.Invocation.Tokens += tokens
		if l.Session.Tokens > 0 {
			s.carry.Spent.Tokens += tokens
		}
	}
}

// working says whether anything of the invocation does not wait for a person.
func (b *branches) working() bool { return b.active == 0 || b.waiting < b.active }

// meter measures the time in which an invocation does not merely wait for people, and ends it where that is limited. Plans
// without such a limit pay nothing for it.
func (s *session) meter(ctx workflow.Context) {
	if !s.in.Plan.Limits.CountsTime() {
		return
	}
	s.since = workflow.Now(ctx)
	workflow.GoNamed(ctx, "meter", func(ctx workflow.Context) {
		for until(ctx, func() bool { return !s.branch.working() }) {
			s.measure(ctx)
			if until(ctx, s.branch.working) {
				s.since = workflow.Now(ctx)
			}
		}
	})
	// One timer, which goes on while people are waited for and is set anew when it fires too early: stopping it would cost
	// events at each wait.
	workflow.GoNamed(ctx, "limit of time", func(ctx workflow.Context) {
		for until(ctx, s.branch.working) {
			left, l := s.left(ctx)
			if left <= 0 {
				s.end(over{end: wire.EndLimit, limit: l})
				return
			}
			if newTimer(ctx, left, "limit of time").Get(ctx, nil) != nil {
				return
			}
		}
	})
}

// measure adds the time since the invocation began or went on.
func (s *session) measure(ctx workflow.Context) {
	if s.since.IsZero() {
		return
	}
	worked := workflow.Now(ctx).Sub(s.since)
	s.since = time.Time{}
	s.carry.Invocation.Worked += worked
	if s.in.Plan.Limits.Session.Duration > 0 {
		s.carry.Spent.Worked += worked
	}
}

// left is how long the invocation may still work, and by which limit.
func (s *session) left(ctx workflow.Context) (time.Duration, limit) {
	l := s.in.Plan.Limits
	var worked time.Duration
	if !s.since.IsZero() {
		worked = workflow.Now(ctx).Sub(s.since)
	}
	own, all := l.Duration-s.carry.Invocation.Worked-worked, l.Session.Duration-s.carry.Spent.Worked-worked
	if l.Session.Duration > 0 && (l.Duration == 0 || all < own) {
		return all, limit{"session.duration", l.Session.Duration.String()}
	}
	return own, limit{"duration", l.Duration.String()}
}
