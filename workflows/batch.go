package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// maxAsked bounds how often one call may ask for a login: a server that refuses every fresh token must not wear a person
// down.
const maxAsked = 3

// maxInputs bounds how often one call may ask for something else: a form may have several steps, and a tool may ask for
// several approvals.
const maxInputs = 10

type batchResult struct {
	escalate, final bool
	transfer        string
}

// batch runs the calls of one model answer side by side. A call that waits holds up nothing but the next model call.
// Afterwards the heads are all responses, in call order.
func (s *session) batch(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (batchResult, error) {
	errs := make([]error, len(f.Calls))
	group := workflow.NewWaitGroup(ctx)
	open := 0
	for _, o := range f.Calls {
		if o.Event == "" {
			open++
		}
	}
	fork := s.branch.fork(open)
	for i := range f.Calls {
		o := &f.Calls[i]
		if o.Event != "" {
			continue
		}
		group.Add(1)
		workflow.GoNamed(ctx, o.Tool+o.Agent, func(ctx workflow.Context) {
			defer group.Done()
			errs[i] = s.stoppable(ctx, t, n, o)
			s.leave(ctx, fork)
		})
	}
	group.Wait(ctx)
	s.branch.join(fork)

	var result batchResult
	if err := worst(errs); errors.Is(err, errContinue) {
		return result, err
	}
	var heads []string
	for i := range f.Calls {
		o := &f.Calls[i]
		if o.Event != "" {
			heads = append(heads, o.Event) // also of a call that was cancelled with the one that it is behind
		}
		heads = append(heads, o.Heads...) // what the agent behind a call has said that did not come to its end
		if errs[i] != nil {
			continue
		}
		if o.Transfer != "" { // the last one counts, as in ADK
			result.transfer = o.Transfer
		}
		result.escalate = result.escalate || o.Escalate
		result.final = result.final || o.Final // one is enough, as in ADK
	}
	if len(heads) > 0 {
		t.at(heads...)
	}
	return result, worst(errs)
}

// call runs one tool call to its response: run, wait for a person if it asks for one, run again with the same call id.
func (s *session) call(ctx workflow.Context, t *thread, n agent.Node, o *wire.OpenCall) error {
	if o.Agent != "" {
		return s.callAgent(ctx, t, n, o)
	}
	in := wire.ToolInput{Call: o.ID}
	for {
		if o.Request == "" {
			done, err := s.try(ctx, o, in)
			if err != nil || done {
				return err
			}
		}
		outcome, err := s.await(ctx, n, o.Asked)
		if err != nil {
			return err
		}
		in.Answered, o.Asked = o.Request, wire.Asked{}
		switch outcome {
		case wire.OutcomeGranted, wire.OutcomeAnswered:
		case wire.OutcomeCancelled: // with another call that waited for it
			in.Answered = ""
		default:
			s.carry.Invocation.Denied = true
			return s.settle(ctx, o, in.Answered, reason(outcome))
		}
	}
}

// try calls the tool once; done says that the call has its response.
func (s *session) try(ctx workflow.Context, o *wire.OpenCall, in wire.ToolInput) (done bool, err error) {
	out, err := callTool(s.activityCtx(ctx), o.Tool, in)
	switch {
	case temporal.IsCanceledError(err):
		return false, err
	case err != nil:
		s.log.Warn("tool call gave up", "tool", o.Tool, "err", err)
		return true, s.settle(ctx, o, "", wire.ReasonFailed)
	case out.Denied:
		s.carry.Invocation.Denied = true
	case out.Request == "":
		s.listed(out)
	case s.falselyAnswered(ctx, in.Answered, out.Request):
		o.Asked = out.Asked
		return false, nil
	case o.Logins >= maxAsked || o.Inputs >= maxInputs:
		return true, s.settle(ctx, o, out.Request, wire.ReasonRefused)
	default:
		o.Asked = out.Asked
		if out.Input || out.Confirmation {
			o.Inputs++
		} else {
			o.Logins++
		}
		return false, nil
	}
	o.Event, o.Escalate, o.Final = out.Event, out.Escalate, out.Final
	return true, nil
}

// listed puts a toolset that a call has connected into the next model call.
func (s *session) listed(out wire.ToolResult) {
	if inv := s.carry.Invocation; out.List != "" && inv != nil {
		inv.Lists[out.Toolset] = out.List
	}
}

func (s *session) settle(ctx workflow.Context, o *wire.OpenCall, request, why string) error {
	out, err := callSettle(ctx, wire.SettleInput{Call: o.ID, Request: request, Reason: why})
	o.Event = out.Event
	return err
}

func reason(o wire.Outcome) string {
	if o == wire.OutcomeExpired {
		return wire.ReasonExpired
	}
	return wire.ReasonDenied
}
