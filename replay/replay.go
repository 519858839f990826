package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
	"tarry/workflows"
)

// ErrMismatch says that today's code would have decided otherwise than the history shows.
var ErrMismatch = errors.New("replay: history does not fit the code")

// ErrHistory says that a file holds no history of a Tarry session.
var ErrHistory = errors.New("replay: not a session's history")

// Result describes a replay that fitted.
type Result struct {
	Events     int
	Activities int
}

// File replays a history in JSON, as `starter export` and `temporal workflow show --output json` write it.
func File(ctx context.Context, path string) (Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return Result{}, fmt.Errorf("open history: %w", err)
	}
	defer f.Close()
	r, err := Reader(ctx, f)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Reader replays a history in JSON.
func Reader(ctx context.Context, r io.Reader) (Result, error) {
	h, err := client.HistoryFromJSON(r, client.HistoryJSONOptions{})
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrHistory, err)
	}
	return History(ctx, h)
}

// History replays h. A difference is an [ErrMismatch] that names the first one.
func History(_ context.Context, h *historypb.History) (Result, error) {
	out := Result{Events: len(h.GetEvents())}
	if out.Events == 0 || h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return out, fmt.Errorf("%w: it does not begin with a started event", ErrHistory)
	}
	name := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	if name != wire.WorkflowSession {
		return out, fmt.Errorf("%w: its workflow is %q, not %q", ErrHistory, name, wire.WorkflowSession)
	}
	seen := &recorder{}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{seen}})
	if err != nil {
		return out, fmt.Errorf("make replayer: %w", err)
	}
	replayer.RegisterWorkflowWithOptions(workflows.Agents(nil).Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	if err := replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h); err != nil {
		return out, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	out.Activities, err = seen.compare(h)
	return out, err
}
