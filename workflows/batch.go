package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// maxAsked bounds how often one call may ask for a login: a server that refuses every fresh token must not wear a person
// down.
const maxAsked = 3

// maxInputs bounds how often one call may ask for something else: a form may have several steps, and a tool may ask for
// several approvals.
const maxInputs = 10

type batchResult struct{ escalate, final bool }

// batch runs the calls of one model answer side by side. A call that waits for a login holds up nothing but the next
// model call. Afterwards the heads are all responses, in call order.
func (s *session) batch(ctx workflow.Context, calls []wire.Call) (batchResult, error) {
	type slot struct {
		out wire.ToolResult
		err error
	}
	slots := make([]slot, len(calls))
	group := workflow.NewWaitGroup(ctx)
	s.branch.fork(len(calls))
	for i, call := range calls {
		if call.Answer != "" {
			slots[i].out.Event = call.Answer
			s.branch.active--
			continue
		}
		group.Add(1)
		workflow.GoNamed(ctx, call.Tool, func(ctx workflow.Context) {
			defer group.Done()
			slots[i].out, slots[i].err = s.call(ctx, call)
			s.leave(ctx)
		})
	}
	group.Wait(ctx)
	s.branch.active++

	var result batchResult
	var heads []string
	var errs []error
	for _, slot := range slots {
		if slot.err != nil {
			errs = append(errs, slot.err)
			continue
		}
		heads = append(heads, slot.out.Event)
		result.escalate = result.escalate || slot.out.Escalate
		result.final = result.final || slot.out.Final // one is enough, as in ADK
	}
	if len(heads) > 0 {
		s.carry.Heads = heads
	}
	return result, errors.Join(errs...)
}

// call runs one tool call to its response: run, wait for a login if it asks for one, run again with the same call id.
func (s *session) call(ctx workflow.Context, c wire.Call) (wire.ToolResult, error) {
	in := wire.ToolInput{Call: c.ID}
	for asked, inputs := 0, 0; ; {
		out, err := callTool(s.activityCtx(ctx), c.Tool, in)
		switch {
		case temporal.IsCanceledError(err):
			return out, err
		case err != nil:
			s.log.Warn("tool call gave up", "tool", c.Tool, "err", err)
			return s.settle(ctx, c, "", wire.ReasonFailed)
		case out.Denied:
			s.carry.Invocation.Denied = true
			return out, nil
		case out.Request == "":
			s.listed(out)
			return out, nil
		case asked >= maxAsked || inputs >= maxInputs:
			return s.settle(ctx, c, out.Request, wire.ReasonRefused)
		case out.Input, out.Confirmation:
			inputs++
		default:
			asked++
		}
		outcome, err := s.await(ctx, out.Asked)
		if err != nil {
			return out, err
		}
		if outcome != wire.OutcomeGranted {
			s.carry.Invocation.Denied = true
			return s.settle(ctx, c, out.Request, reason(outcome))
		}
		in.Answered = out.Request
	}
}

// listed puts a toolset that a call has connected into the next model call.
func (s *session) listed(out wire.ToolResult) {
	if inv := s.carry.Invocation; out.List != "" && inv != nil {
		inv.Lists[out.Toolset] = out.List
	}
}

func (s *session) settle(ctx workflow.Context, c wire.Call, request, why string) (wire.ToolResult, error) {
	out, err := callSettle(ctx, wire.SettleInput{Call: c.ID, Request: request, Reason: why})
	return wire.ToolResult{Event: out.Event}, err
}

func reason(o wire.Outcome) string {
	if o == wire.OutcomeExpired {
		return wire.ReasonExpired
	}
	return wire.ReasonDenied
}
