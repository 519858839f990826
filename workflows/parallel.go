package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// parallel runs the children side by side, each in a branch of its own that the others do not see, as in ADK. A wait inside a
// child blocks that child alone. One that fails ends the others; what they said stays.
func (s *session) parallel(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (escalated bool, err error) {
	if f.Branches == nil {
		f.Branches = make([]wire.Branch, len(n.Children))
		for i := range f.Branches {
			f.Branches[i].Heads = slices.Clone(t.heads)
		}
	}
	work, stop := workflow.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(n.Children))
	group := workflow.NewWaitGroup(ctx)
	open := 0
	for _, b := range f.Branches {
		if !b.Done {
			open++
		}
	}
	fork := s.branch.fork(open)
	for i, child := range n.Children {
		b := &f.Branches[i]
		if b.Done {
			continue
		}
		group.Add(1)
		workflow.GoNamed(work, child.Name, func(ctx workflow.Context) {
			defer group.Done()
			own := &thread{heads: b.Heads, scope: t.scope}
			b.Escalate, errs[i] = s.agentRun(ctx, own, child, &b.Frame)
			b.Heads, b.Done = own.heads, errs[i] == nil
			if b.Done {
				b.Frame = wire.Frame{}
			} else if !errors.Is(errs[i], errContinue) {
				stop()
			}
			s.leave(ctx, fork)
		})
	}
	group.Wait(ctx)
	s.branch.join(fork)
	err = worst(errs)
	if errors.Is(err, errContinue) {
		return false, err
	}
	t.at(tips(t.heads, f.Branches)...)
	if err != nil {
		return false, err
	}
	for _, b := range f.Branches {
		escalated = escalated || b.Escalate
	}
	f.Branches = nil
	return escalated, nil
}

// tips are the heads of all branches that have said something, in the order of the children.
func tips(start []string, branches []wire.Branch) (out []string) {
	for _, b := range branches {
		if slices.Equal(b.Heads, start) {
			continue
		}
		for _, head := range b.Heads {
			if !slices.Contains(out, head) {
				out = append(out, head)
			}
		}
	}
	if len(out) == 0 {
		return start
	}
	return out
}

// worst picks the error that decides how the invocation goes on: a failure, else a cancellation, else the wish to continue
// in a new run. The cancellations that a failure causes are none of their own.
func worst(errs []error) error {
	var ended *endError
	var again, other error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.As(err, &ended):
			return err
		case errors.Is(err, errContinue):
			again = err
		case other == nil || !temporal.IsCanceledError(err):
			other = err
		}
	}
	if other != nil {
		return other
	}
	return again
}
