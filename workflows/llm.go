package workflows

import (
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// llm runs one LlmAgent: list its toolsets once per invocation, call the model, run what it calls, and again, until it
// answers without a call or hands the conversation over; next is the agent that it hands it to. Between two model calls lies the turn boundary at which a run may continue as new.
func (s *session) llm(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (escalate bool, next string, err error) {
	s.agent = n.Name
	for {
		if len(f.Calls) == 0 {
			final, err := s.turn(ctx, t, n, f)
			if err != nil || final {
				return false, "", err
			}
		}
		done, err := s.batch(ctx, t, n, f)
		if err != nil {
			return false, "", err
		}
		f.Calls = nil
		if done.escalate || done.final || done.transfer != "" {
			return done.escalate, done.transfer, nil
		}
	}
}

// turn asks the model and opens its calls; final says that it made none.
func (s *session) turn(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (final bool, err error) {
	lists, err := s.lists(ctx, t, n)
	if err != nil {
		return false, err
	}
	if s.due(ctx) {
		return false, errContinue
	}
	if err := s.spend(); err != nil {
		return false, err
	}
	turn, err := callModel(s.activityCtx(ctx), wire.ModelInput{Agent: n.Name, Heads: t.heads, Lists: lists, Scope: t.scope})
	if err != nil {
		return false, err
	}
	t.at(turn.Event)
	s.worked = true
	s.used(turn.Tokens)
	if turn.Failed {
		return false, &endError{wire.EndFailed}
	}
	for _, call := range turn.Calls {
		f.Calls = append(f.Calls, wire.OpenCall{Call: call, Event: call.Answer})
	}
	return len(f.Calls) == 0, nil
}

// lists returns the listings of the agent's toolsets, each made once per invocation. A toolset whose login was denied
// has none: the model works without it and is told so.
func (s *session) lists(ctx workflow.Context, t *thread, n agent.Node) ([]string, error) {
	inv := s.carry.Invocation
	var out []string
	for _, toolset := range n.Toolsets {
		list, known := inv.Lists[toolset]
		if !known {
			var err error
			if list, err = s.list(ctx, t, n, toolset); err != nil {
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

func (s *session) list(ctx workflow.Context, t *thread, n agent.Node, toolset string) (string, error) {
	in := wire.ListInput{Agent: n.Name, Toolset: toolset, Heads: t.heads, Scope: t.scope}
	for asked := 0; ; asked++ {
		out, err := callList(s.activityCtx(ctx), in)
		if err != nil {
			return "", err
		}
		if out.Asking != "" {
			t.at(out.Asking)
			in.Heads = t.heads
		}
		if s.falselyAnswered(ctx, in.Answered, out.Request) {
			asked--
		}
		if out.Request == "" || asked >= maxAsked {
			return out.List, nil
		}
		outcome, err := s.await(ctx, n, out.Asked)
		if err != nil {
			return "", err
		}
		if outcome == wire.OutcomeCancelled { // with a call that waited for it too
			in.Answered = ""
			continue
		}
		if outcome != wire.OutcomeGranted {
			s.carry.Invocation.Denied = true
			_, err := callSettle(ctx, wire.SettleInput{Request: out.Request, Reason: reason(outcome)})
			return "", err
		}
		in.Answered = out.Request
	}
}
