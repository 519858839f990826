package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

func (s *session) status() (wire.Status, error) {
	st := wire.Status{State: s.state, Runs: s.carry.Runs + 1, Requests: s.waits.requests()}
	if inv := s.carry.Invocation; inv != nil {
		st.Invocation, st.ModelCalls, st.Agent = inv.ID, inv.ModelCalls, s.agent
		st.Iteration = inv.Frame.Iteration + 1
	}
	return st, nil
}

// setState shows the state where people look: in the search attributes and, in words, in the Temporal UI.
func (s *session) setState(ctx workflow.Context, state wire.State) {
	if s.state == state {
		return
	}
	s.state = state
	workflow.SetCurrentDetails(ctx, s.details())
	if !s.in.SearchAttributes {
		return
	}
	err := workflow.UpsertTypedSearchAttributes(ctx, temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus).ValueSet(string(state)))
	if err != nil {
		s.log.Warn("set search attribute", "err", err)
	}
}

func (s *session) details() string {
	switch s.state {
	case wire.StateWaitingCredential:
		return fmt.Sprintf("Waiting for a person to log in, so that agent %s can go on. Nothing runs meanwhile.", s.agent)
	case wire.StateWaitingInput:
		return fmt.Sprintf("Waiting for a person to do what the server of a tool asks for, so that agent %s can go on. Nothing runs meanwhile.", s.agent)
	case wire.StateWaitingConfirmation:
		return fmt.Sprintf("Waiting for a person to approve a call of agent %s. Nothing runs meanwhile.", s.agent)
	case wire.StateRunning:
		return "Running."
	default:
		return "Idle: waiting for a message."
	}
}
