package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// waits matches outcomes with those who wait for them.
type waits struct {
	open    map[string]workflow.Settable
	futures map[string]workflow.Future
	// outcomes are those that were resolved and that nobody has acted on yet.
	outcomes map[string]wire.Outcome
	// waiters counts who waits for a request.
	waiters map[string]int
	// early holds outcomes that came before anybody waited: a grant can overtake the result that names its request.
	early []wire.Resolved
}

// maxEarly bounds the outcomes that nobody waits for; the store's sweeper signals again what was dropped.
const maxEarly = 200

// future returns the one future of a request, shared by all calls that were coalesced into it.
func (w *waits) future(ctx workflow.Context, request string) workflow.Future {
	if f, ok := w.futures[request]; ok {
		return f
	}
	f, set := workflow.NewFuture(ctx)
	w.futures[request], w.open[request] = f, set
	if i := slices.IndexFunc(w.early, func(r wire.Resolved) bool { return r.Request == request }); i >= 0 {
		w.resolve(w.early[i])
		w.early = slices.Delete(w.early, i, i+1)
	}
	return f
}

// reopen makes a request that was resolved wait again.
func (w *waits) reopen(ctx workflow.Context, request string) {
	if f := w.futures[request]; f != nil && f.IsReady() {
		delete(w.futures, request)
		delete(w.outcomes, request)
		w.future(ctx, request)
	}
}

// resolve hands an outcome to its waiters; it is single use. A repeat finds nothing open and is ignored.
func (w *waits) resolve(r wire.Resolved) {
	set, waiting := w.open[r.Request]
	switch {
	case r.Request == "":
	case waiting:
		delete(w.open, r.Request)
		w.outcomes[r.Request] = r.Outcome
		set.SetValue(r.Outcome)
	case w.futures[r.Request] != nil: // resolved before
	default:
		if !slices.ContainsFunc(w.early, func(e wire.Resolved) bool { return e.Request == r.Request }) {
			w.early = append(w.early, r)
		}
		if extra := len(w.early) - maxEarly; extra > 0 {
			w.early = slices.Delete(w.early, 0, extra)
		}
	}
}

// abandon forgets the requests of an invocation that has ended; their outcomes, should they come, go to early and out.
func (w *waits) abandon() {
	clear(w.open)
	clear(w.futures)
	clear(w.outcomes)
}

// carried are the outcomes that the next run has to find.
func (w *waits) carried() []wire.Resolved {
	out := w.early
	for _, request := range workflow.DeterministicKeys(w.outcomes) {
		out = append(out, wire.Resolved{Request: request, Outcome: w.outcomes[request]})
	}
	return out
}

// heard says that somebody who waits is about to act on an outcome.
func (w *waits) heard() bool {
	return slices.ContainsFunc(workflow.DeterministicKeys(w.outcomes), func(request string) bool { return w.waiters[request] > 0 })
}

func (w *waits) requests() []string {
	return workflow.DeterministicKeys(w.open)
}

// await blocks until the request is resolved, its deadline passes or the invocation is cancelled. Nothing runs meanwhile.
func (s *session) await(ctx workflow.Context, n agent.Node, asked wire.Asked) (wire.Outcome, error) {
	answer := s.waits.future(ctx, asked.Request)
	s.branch.waiting++
	defer func() { s.branch.waiting-- }()
	s.waits.waiters[asked.Request]++
	defer func() { s.waits.waiters[asked.Request]-- }()
	switch {
	case asked.Input:
		s.branch.inputs++
		defer func() { s.branch.inputs-- }()
	case asked.Confirmation:
		s.branch.confirm++
		defer func() { s.branch.confirm-- }()
	}
	s.park(ctx)
	if !answer.IsReady() {
		s.log.Info("waiting for a person", "request_id", asked.Request, "input", asked.Input)
		s.mirror(ctx)
	}
	outcome, err := s.answer(ctx, n, asked, answer)
	if err != nil {
		return "", err
	}
	delete(s.waits.outcomes, asked.Request)
	s.reminded(asked.Request)
	if outcome == wire.OutcomeExpired && n.OnDeadline == agent.DeadlineFail {
		s.carry.Invocation.Denied = true
		s.end(over{end: wire.EndFailed, expired: asked.Request})
		return "", &endError{wire.EndFailed}
	}
	s.setState(ctx, wire.StateRunning)
	s.log.Info("wait is over", "request_id", asked.Request, "outcome", string(outcome))
	return outcome, nil
}

// changeReopen: a request that is open although a signal said that it was answered is waited for.
const changeReopen = "reopen"

// falselyAnswered says that the very request that was answered is asked again: its row is open, and the signal was not the
// truth. The row is what counts, so the run waits for it anew; nobody is asked more often for that.
func (s *session) falselyAnswered(ctx workflow.Context, answered, asked string) bool {
	if answered == "" || answered != asked || workflow.GetVersion(ctx, changeReopen, workflow.DefaultVersion, 1) != 1 {
		return false
	}
	s.waits.reopen(ctx, asked)
	return true
}

func (s *session) answer(ctx workflow.Context, n agent.Node, asked wire.Asked, answer workflow.Future) (outcome wire.Outcome, err error) {
	timed, cancel := workflow.WithCancel(ctx)
	defer cancel()
	var deadline workflow.Future
	if !asked.Deadline.IsZero() {
		left := max(asked.Deadline.Sub(workflow.Now(ctx)), 0)
		deadline = newTimer(timed, left, "deadline")
	}
	for remind := true; remind && err == nil; {
		remind = false
		selector := workflow.NewSelector(ctx)
		selector.AddFuture(answer, func(f workflow.Future) { err = f.Get(ctx, &outcome) })
		selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { err = ctx.Err() })
		selector.AddFuture(s.drained, func(workflow.Future) {
			if err = errContinue; answer.IsReady() {
				err = answer.Get(ctx, &outcome)
			}
		})
		if deadline != nil {
			selector.AddFuture(deadline, func(workflow.Future) { outcome, err = s.expire(ctx, asked.Request) })
		}
		if next, ok := s.nextReminder(ctx, n, asked); ok && !answer.IsReady() && !s.drained.IsReady() {
			selector.AddFuture(newTimer(timed, next, "reminder"), func(workflow.Future) { remind, err = true, s.remind(ctx, n, asked) })
		}
		selector.Select(ctx)
	}
	return outcome, err
}

// expire closes the row at the deadline. The row decides: a login that was committed a moment before wins.
func (s *session) expire(ctx workflow.Context, request string) (wire.Outcome, error) {
	s.branch.waiting-- // no run ends while its activity is on its way
	defer func() { s.branch.waiting++ }()
	out, err := callClose(s.activityCtx(ctx), wire.CloseInput{Request: request})
	if err != nil {
		return "", err
	}
	s.waits.resolve(wire.Resolved{Request: request, Outcome: out.Outcome})
	return out.Outcome, nil
}
