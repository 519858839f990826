package workflows

import (
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// loop runs the children in order, again and again, until one escalates or the iterations are used up. A wait inside a
// child blocks the loop, since it is plain control flow. As in ADK, an escalation ends the loops around this one too.
func (s *session) loop(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (bool, error) {
	for ; n.MaxIterations == 0 || f.Iteration < n.MaxIterations; f.Iteration++ {
		escalate, err := s.children(ctx, t, n, f, true)
		if err != nil {
			return false, err
		}
		if escalate {
			f.Escalate = false // heard
			return n.Escalates, nil
		}
		f.Child = 0
	}
	return false, nil
}

// sequence runs the children once. Unlike a loop it does not stop when one escalates, as in ADK; it hands that on.
func (s *session) sequence(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (bool, error) {
	return s.children(ctx, t, n, f, false)
}

func (s *session) children(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame, stop bool) (bool, error) {
	for ; f.Child < len(n.Children); f.Child++ {
		if f.Sub == nil {
			f.Sub = &wire.Frame{}
		}
		escalate, err := s.agentRun(ctx, t, n.Children[f.Child], f.Sub)
		if err != nil {
			return false, err
		}
		f.Sub = nil
		f.Escalate = f.Escalate || escalate
		if escalate && stop {
			break
		}
	}
	return f.Escalate, nil
}
