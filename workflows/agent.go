package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// agentRun runs an agent, and those that the conversation is handed to, one after the other. The callbacks after them run
// when all are done, the last one's first, as in ADK, where they are nested. escalate says that a tool asked the enclosing
// loop to stop.
func (s *session) agentRun(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (escalate bool, err error) {
	for {
		now := n
		if f.Agent != "" {
			if now, err = s.node(f.Agent); err != nil {
				return false, err
			}
		}
		escalated, next, err := s.one(ctx, t, now, f)
		if err != nil {
			return false, err
		}
		f.Escalate = f.Escalate || escalated
		if next == "" {
			break
		}
		*f = wire.Frame{Agent: next, After: f.After, Escalate: f.Escalate}
	}
	for ; len(f.After) > 0; f.After = f.After[:len(f.After)-1] {
		if _, err := s.callback(ctx, t, f.After[len(f.After)-1], true); err != nil {
			return false, err
		}
	}
	return f.Escalate, nil
}

// one runs an agent between its callbacks; next is the agent that it hands the conversation to.
func (s *session) one(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (escalate bool, next string, err error) {
	if (n.Before || n.After) && !f.Begun {
		if n.Before {
			if s.due(ctx) { // in a loop whose agents' callbacks always answer there is no other boundary
				return false, "", errContinue
			}
			said, err := s.callback(ctx, t, n.Name, false)
			if said || err != nil {
				return false, "", err
			}
		}
		if n.After {
			f.After = append(f.After, n.Name)
		}
		f.Begun = true
	}
	switch n.Kind {
	case agent.KindLLM:
		return s.llm(ctx, t, n, f)
	case agent.KindLoop:
		escalate, err = s.loop(ctx, t, n, f)
	case agent.KindSequential:
		escalate, err = s.sequence(ctx, t, n, f)
	case agent.KindParallel:
		escalate, err = s.parallel(ctx, t, n, f)
	case agent.KindCustom:
		escalate, err = s.runCustom(ctx, t, n, f)
	default:
		err = temporal.NewNonRetryableApplicationError("plan has an agent of a kind that this worker does not know: "+string(n.Kind), wire.ErrorFinal, nil)
	}
	return escalate, "", err
}

// callback runs the callbacks on one side of an agent; said says that they have answered in its place.
func (s *session) callback(ctx workflow.Context, t *thread, name string, after bool) (said bool, err error) {
	out, err := callCallback(s.activityCtx(ctx), wire.CallbackInput{Agent: name, After: after, Heads: t.heads, Scope: t.scope})
	if err != nil {
		return false, err
	}
	if out.Event != "" {
		t.at(out.Event)
	}
	if out.Failed {
		return false, &endError{wire.EndFailed}
	}
	s.worked = true
	return out.Said, nil
}

// node finds an agent of the plan.
func (s *session) node(name string) (agent.Node, error) {
	if n, ok := find(s.in.Plan.Root, name); ok {
		return n, nil
	}
	return agent.Node{}, temporal.NewNonRetryableApplicationError("plan has no agent "+name, wire.ErrorFinal, nil)
}

func find(n agent.Node, name string) (agent.Node, bool) {
	if n.Name == name {
		return n, true
	}
	for _, below := range [][]agent.Node{n.AgentTools, n.Children} {
		for _, child := range below {
			if found, ok := find(child, name); ok {
				return found, true
			}
		}
	}
	return agent.Node{}, false
}
