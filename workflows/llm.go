package workflows

import (
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// llm runs one LlmAgent: list its toolsets once per invocation, call the model, run what it calls, and again, until it
// answers without a call. Between two model calls lies the turn boundary at which a run may continue as new.
func (s *session) llm(ctx workflow.Context, n agent.Node) (escalate bool, err error) {
	s.agent = n.Name
	for {
		lists, err := s.lists(ctx, n)
		if err != nil {
			return false, err
		}
		if s.due(ctx) {
			return false, errContinue
		}
		if err := s.spend(); err != nil {
			return false, err
		}
		turn, err := callModel(s.activityCtx(ctx), wire.ModelInput{Agent: n.Name, Heads: s.carry.Heads, Lists: lists})
		if err != nil {
			return false, err
		}
		s.carry.Heads, s.worked = []string{turn.Event}, true
		if turn.Failed {
			return false, &endError{wire.EndFailed}
		}
		if len(turn.Calls) == 0 {
			return false, nil
		}
		done, err := s.batch(ctx, turn.Calls)
		if err != nil {
			return false, err
		}
		if done.escalate || done.final {
			return done.escalate, nil
		}
	}
}

// spend counts a model call against the invocation's limit, over the whole tree.
func (s *session) spend() error {
	limit := s.in.Plan.Limits.ModelCalls
	if limit == 0 {
		limit = agent.DefaultModelCalls
	}
	inv := s.carry.Invocation
	if inv.ModelCalls >= limit {
		return &endError{wire.EndLimit}
	}
	inv.ModelCalls++
	return nil
}

// lists returns the listings of the agent's toolsets, each made once per invocation. A toolset whose login was denied
// has none: the model works without it and is told so.
func (s *session) lists(ctx workflow.Context, n agent.Node) ([]string, error) {
	inv := s.carry.Invocation
	var out []string
	for _, toolset := range n.Toolsets {
		list, known := inv.Lists[toolset]
		if !known {
			var err error
			if list, err = s.list(ctx, n, toolset); err != nil {
				return nil, err
			}
			inv.Lists[toolset] = list
		}
		if list != "" {
			out = append(out, list)
		}
	}
	return out, nil
}

func (s *session) list(ctx workflow.Context, n agent.Node, toolset string) (string, error) {
	in := wire.ListInput{Agent: n.Name, Toolset: toolset, Heads: s.carry.Heads}
	for asked := 0; ; asked++ {
		out, err := callList(s.activityCtx(ctx), in)
		if err != nil {
			return "", err
		}
		if out.Asking != "" {
			s.carry.Heads = []string{out.Asking}
			in.Heads = s.carry.Heads
		}
		if out.Request == "" || asked >= maxAsked {
			return out.List, nil
		}
		outcome, err := s.await(ctx, out.Asked)
		if err != nil {
			return "", err
		}
		if outcome != wire.OutcomeGranted {
			s.carry.Invocation.Denied = true
			_, err := callSettle(ctx, wire.SettleInput{Request: out.Request, Reason: reason(outcome)})
			return "", err
		}
		in.Answered = out.Request
	}
}
