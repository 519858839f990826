package tarrytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker" //nolint:depguard // for the options of the SDK's test environment; nothing connects
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// A session is a chain of runs: each has an environment of its own, and they share the store, the workflow id and the clock.

// begin prepares the next run of the chain.
func (r *Run) begin(start time.Time) {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(start)
	env.SetTestTimeout(patience)
	env.SetContinueAsNewSuggested(r.short)
	n := r.runs.Add(1)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&runOf{id: "run-" + strconv.FormatInt(n, 10)}}})
	env.RegisterWorkflowWithOptions(r.agents.Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	r.activities.Register(env)
	r.env.Store(env)
}

// execute runs the chain to its end.
func (r *Run) execute(in wire.SessionInput) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.err = panicError{p}
		}
	}()
	for {
		env := r.env.Load()
		env.ExecuteWorkflow(wire.WorkflowSession, in)
		next, again, err := continued(env.GetWorkflowError())
		if !again || r.stuck.Load() {
			r.err = err
			return
		}
		in = next
		r.begin(env.Now())
	}
}

// continued finds what the next run of a chain starts with; again is false where there is none.
func continued(err error) (in wire.SessionInput, again bool, _ error) {
	var next *workflow.ContinueAsNewError
	if !errors.As(err, &next) {
		return in, false, err
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
		return in, false, fmt.Errorf("read input of next run: %w", err)
	}
	return in, true, nil
}

type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// runOf gives activities the id of their run, of which the ids of events are made; the test environment has one for all.
type runOf struct {
	interceptor.WorkerInterceptorBase
	id string
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (r *runOf) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &runOfInbound{interceptor.ActivityInboundInterceptorBase{Next: next}, r.id}
}

type runOfInbound struct {
	interceptor.ActivityInboundInterceptorBase
	id string
}

// Init implements [interceptor.ActivityInboundInterceptor].
func (i *runOfInbound) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(&runOfOutbound{interceptor.ActivityOutboundInterceptorBase{Next: outbound}, i.id})
}

type runOfOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	id string
}

// GetInfo implements [interceptor.ActivityOutboundInterceptor].
func (o *runOfOutbound) GetInfo(ctx context.Context) activity.Info {
	info := o.Next.GetInfo(ctx)
	info.WorkflowExecution.RunID = o.id
	return info
}
