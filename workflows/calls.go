package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// Every activity call of the workflow, with its timeouts, retries and the line that the Temporal UI shows. Activity ids
// are the SDK's own: replay checks their sequence, and an id of ours would make a reset fail for ever.

const (
	defaultHeartbeat = 30 * time.Second
	bookkeeping      = 30 * time.Second // a few statements in the store
	modelTimeout     = 15 * time.Minute
	toolTimeout      = time.Hour
	listTimeout      = 2 * time.Minute
	callbackTimeout  = 15 * time.Minute
)

// activityCtx sets what all activities of a session share.
func (s *session) activityCtx(ctx workflow.Context) workflow.Context {
	heartbeat := s.in.Timing.Heartbeat
	if heartbeat == 0 {
		heartbeat = defaultHeartbeat
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: bookkeeping,
		HeartbeatTimeout:    heartbeat,
		// An activity that was cancelled and goes on could still write to the log of a session that has gone on too.
		WaitForCancellation: true,
	})
}

func retry(attempts int32) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:        500 * time.Millisecond,
		BackoffCoefficient:     2,
		MaximumInterval:        time.Minute,
		MaximumAttempts:        attempts,
		NonRetryableErrorTypes: []string{wire.ErrorFinal},
	}
}

func withOptions(ctx workflow.Context, timeout time.Duration, attempts int32, summary string) workflow.Context {
	o := workflow.GetActivityOptions(ctx)
	o.StartToCloseTimeout, o.RetryPolicy, o.Summary = timeout, retry(attempts), summary
	return workflow.WithActivityOptions(ctx, o)
}

// execute runs an activity, and none at all once ctx is cancelled: the SDK would schedule it and cancel it then.
func execute(ctx workflow.Context, activity string, in, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, activity, in).Get(ctx, out)
}

// Bookkeeping is retried without end: the store comes back, and nothing can go on before.
func callTake(ctx workflow.Context, in wire.TakeInput) (out wire.TakeResult, err error) {
	ctx = withOptions(ctx, bookkeeping, 0, "")
	err = execute(ctx, wire.ActivityTake, in, &out)
	return out, err
}

func callList(ctx workflow.Context, in wire.ListInput) (out wire.ListResult, err error) {
	ctx = withOptions(ctx, listTimeout, 20, in.Toolset)
	err = execute(ctx, wire.ActivityListTools, in, &out)
	return out, err
}

func callModel(ctx workflow.Context, in wire.ModelInput) (out wire.ModelResult, err error) {
	ctx = withOptions(ctx, modelTimeout, 20, in.Agent)
	err = execute(ctx, wire.ActivityCallModel, in, &out)
	return out, err
}

func callTool(ctx workflow.Context, tool string, in wire.ToolInput) (out wire.ToolResult, err error) {
	ctx = withOptions(ctx, toolTimeout, 20, "")
	err = execute(ctx, wire.ToolPrefix+tool, in, &out)
	return out, err
}

func callClose(ctx workflow.Context, in wire.CloseInput) (out wire.CloseResult, err error) {
	ctx = withOptions(ctx, bookkeeping, 0, "deadline")
	err = execute(ctx, wire.ActivityClose, in, &out)
	return out, err
}

func callCallback(ctx workflow.Context, in wire.CallbackInput) (out wire.CallbackResult, err error) {
	ctx = withOptions(ctx, callbackTimeout, 20, in.Agent)
	err = execute(ctx, wire.ActivityCallback, in, &out)
	return out, err
}

// local runs a local activity: it writes one event of history.
func local(ctx workflow.Context, activity string, in, out any) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: bookkeeping,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	})
	return workflow.ExecuteLocalActivity(ctx, activity, in).Get(ctx, out)
}

func callSettle(ctx workflow.Context, in wire.SettleInput) (out wire.SettleResult, err error) {
	err = local(ctx, wire.ActivitySettle, in, &out)
	return out, err
}

func callGuard(ctx workflow.Context, in wire.GuardInput) (out wire.GuardResult, err error) {
	ctx = withOptions(ctx, callbackTimeout, 20, "")
	err = execute(ctx, wire.ActivityGuard, in, &out)
	return out, err
}

// callReturnWithCallbacks is no local activity: callbacks may take their time.
func callReturnWithCallbacks(ctx workflow.Context, in wire.ReturnInput) (out wire.ReturnResult, err error) {
	ctx = withOptions(ctx, callbackTimeout, 20, "")
	err = execute(ctx, wire.ActivityReturn, in, &out)
	return out, err
}

func callReturn(ctx workflow.Context, in wire.ReturnInput) (out wire.ReturnResult, err error) {
	err = local(ctx, wire.ActivityReturn, in, &out)
	return out, err
}

func callEmit(ctx workflow.Context, in wire.EmitInput) (out wire.EmitResult, err error) {
	err = local(ctx, wire.ActivityEmit, in, &out)
	return out, err
}

func callOpen(ctx workflow.Context, in wire.OpenInput) (out wire.OpenResult, err error) {
	err = local(ctx, wire.ActivityOpen, in, &out)
	return out, err
}

func callRead(ctx workflow.Context, in wire.ReadInput) (out wire.ReadResult, err error) {
	err = local(ctx, wire.ActivityRead, in, &out)
	return out, err
}

func callKeep(ctx workflow.Context, in wire.KeepInput) (out wire.KeepResult, err error) {
	err = local(ctx, wire.ActivityKeep, in, &out)
	return out, err
}

func callKept(ctx workflow.Context, in wire.KeptInput) (out wire.KeptResult, err error) {
	err = local(ctx, wire.ActivityKept, in, &out)
	return out, err
}

func callMirror(ctx workflow.Context, in wire.MirrorInput) error {
	return local(ctx, wire.ActivityMirror, in, nil)
}

func callFinish(ctx workflow.Context, in wire.FinishInput) (out wire.FinishResult, err error) {
	err = local(ctx, wire.ActivityFinish, in, &out)
	return out, err
}

func callRemind(ctx workflow.Context, in wire.RemindInput) error {
	return local(ctx, wire.ActivityRemind, in, nil)
}

func callQueued(ctx workflow.Context, in wire.QueuedInput) (out wire.QueuedResult, err error) {
	err = local(ctx, wire.ActivityQueued, in, &out)
	return out, err
}

func newTimer(ctx workflow.Context, d time.Duration, summary string) workflow.Future {
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: summary})
}
