package workflows

import (
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// callAgent runs the agent behind a call to its end. It works in a thread of its own that begins at the call, so what it waits
// for is a wait like any other; its last words are the call's response.
func (s *session) callAgent(ctx workflow.Context, t *thread, n agent.Node, o *wire.OpenCall) error {
	called, err := s.node(o.Agent)
	if err != nil {
		return err
	}
	if o.Sub == nil {
		heads := t.heads
		if n.ToolCallbacks {
			guarded, err := callGuard(s.activityCtx(ctx), wire.GuardInput{Call: o.ID, Heads: heads})
			if err != nil {
				return err
			}
			if guarded.Event != "" {
				o.Event = guarded.Event
				return nil
			}
			if guarded.Set != "" {
				heads = []string{guarded.Set}
			}
		}
		o.Sub, o.Heads = &wire.Frame{}, heads
	}
	own := &thread{heads: o.Heads, scope: o.ID}
	_, err = s.agentRun(ctx, own, called, o.Sub)
	o.Heads = own.heads
	if err != nil {
		return err
	}
	in, done := wire.ReturnInput{Call: o.ID, Heads: o.Heads}, callReturn
	if n.ToolCallbacks {
		ctx, done = s.activityCtx(ctx), callReturnWithCallbacks
	}
	out, err := done(ctx, in)
	if err != nil {
		return err
	}
	s.agent = n.Name
	o.Event, o.Final, o.Sub, o.Heads = out.Event, out.Final, nil, nil
	return nil
}
