package replay

import (
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// recorder notes the steps that the replayed code takes, in order. The workflow's threads run one at a time.
type recorder struct {
	interceptor.WorkerInterceptorBase
	steps []step
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (r *recorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &inbound{recorder: r}
	in.Next = next
	return in
}

// note takes down a step of the task at hand.
func (r *recorder) note(ctx workflow.Context, s step, future workflow.Future) {
	s.task = int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	s.dropped = func() bool { return future != nil && future.IsReady() && ctx.Err() != nil }
	r.steps = append(r.steps, s)
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	recorder *recorder
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outbound{recorder: i.recorder}
	out.Next = next
	return i.Next.Init(out)
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	out, err := i.Next.ExecuteWorkflow(ctx, in)
	end := endDone
	switch {
	case workflow.IsContinueAsNewError(err):
		end = endContinued
	case temporal.IsCanceledError(err):
		end = endCancelled
	case err != nil:
		end = endFailed
	}
	i.recorder.note(ctx, step{kind: kindEnd, name: end}, nil)
	return out, err
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	recorder *recorder
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	future := o.Next.ExecuteActivity(ctx, name, args...)
	o.recorder.note(ctx, step{kind: kindActivity, name: name, input: inputOf(args)}, future)
	return future
}

// ExecuteLocalActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.recorder.note(ctx, step{kind: kindLocal, name: name, input: inputOf(args)}, nil)
	return o.Next.ExecuteLocalActivity(ctx, name, args...)
}

// NewTimer implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	return o.timer(ctx, d, o.Next.NewTimer(ctx, d))
}

// NewTimerWithOptions implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	return o.timer(ctx, d, o.Next.NewTimerWithOptions(ctx, d, options))
}

// timer notes a timer that is set at all: one that is over at once, or whose context is, leads to no command.
func (o *outbound) timer(ctx workflow.Context, d time.Duration, future workflow.Future) workflow.Future {
	if !future.IsReady() {
		o.recorder.note(ctx, step{kind: kindTimer, wait: d}, future)
	}
	return future
}

// UpsertTypedSearchAttributes implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) UpsertTypedSearchAttributes(ctx workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	err := o.Next.UpsertTypedSearchAttributes(ctx, attributes...)
	if err == nil {
		o.recorder.note(ctx, step{kind: kindStatus}, nil)
	}
	return err
}

// inputOf encodes arguments as they would stand in history; what cannot be encoded equals nothing there.
func inputOf(args []any) []byte {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	if err != nil {
		return []byte(errors.Join(errors.New("not encodable"), err).Error())
	}
	return joined(payloads)
}

func joined(payloads *commonpb.Payloads) (out []byte) {
	for i, p := range payloads.GetPayloads() {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, p.GetData()...)
	}
	return out
}
