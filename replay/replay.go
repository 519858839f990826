package replay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
	"tarry/workflows"
)

// Replayer runs histories against the workflow code of this program. The zero value knows no custom agents. It may be used
// by several goroutines.
type Replayer struct {
	// Agents are the custom agents that the worker has: the CustomAgents of its App.
	Agents workflows.Agents
}

// Result describes a replay that fitted.
type Result struct {
	// Events are those of the history; Activities those that were compared, with their inputs; Locals the local ones, of
	// which histories hold no inputs; Timers were compared with their durations.
	Events     int `json:"events"`
	Activities int `json:"activities"`
	Locals     int `json:"local_activities"`
	Timers     int `json:"timers"`
}

// File replays a history with a [Replayer] without custom agents, as Reader and History do.
func File(ctx context.Context, path string) (Result, error) { return Replayer{}.File(ctx, path) }

// Reader replays a history in JSON.
func Reader(ctx context.Context, r io.Reader) (Result, error) { return Replayer{}.Reader(ctx, r) }

// History replays h.
func History(ctx context.Context, h *historypb.History) (Result, error) {
	return Replayer{}.History(ctx, h)
}

// File replays a history in JSON, as `starter export` and `temporal workflow show --output json` write it.
func (p Replayer) File(ctx context.Context, path string) (Result, error) {
	r, err := p.file(ctx, path)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (p Replayer) file(ctx context.Context, path string) (Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return Result{}, err //nolint:wrapcheck // it names the operation and the path
	}
	defer f.Close()
	return p.Reader(ctx, f)
}

// Reader replays a history in JSON.
func (p Replayer) Reader(ctx context.Context, r io.Reader) (Result, error) {
	h, err := Read(r)
	if err != nil {
		return Result{}, err
	}
	return p.History(ctx, h)
}

// Read reads a history in JSON. What is none is an [ErrHistory].
func Read(r io.Reader) (*historypb.History, error) {
	h, err := client.HistoryFromJSON(r, client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHistory, err)
	}
	return h, nil
}

// History replays h, which may be of a run that goes on. A difference is a [DifferenceError], and thereby an [ErrMismatch];
// what cannot be checked is an [ErrHistory] or an [ErrAgents].
func (p Replayer) History(_ context.Context, h *historypb.History) (Result, error) {
	out := Result{Events: len(h.GetEvents())}
	in, unknown, err := started(h)
	if err != nil {
		return out, err
	}
	if unknown != "" {
		return out, &DifferenceError{Event: 1, Then: "was started with " + unknown, Now: "read a start input without it", Reason: reasonPlan}
	}
	if err := p.registered(in.Plan.Root); err != nil {
		return out, err
	}
	history, err := stepsOf(h)
	if err != nil {
		return out, err
	}
	for _, s := range history {
		switch s.kind {
		case kindActivity:
			out.Activities++
		case kindLocal:
			out.Locals++
		case kindTimer:
			out.Timers++
		case kindStatus, kindEnd:
		}
	}
	code, failure := p.run(h)
	c := compare(history, code, lastTask(h))
	difference := c.difference(failure == nil)
	switch {
	case difference == nil && failure == nil:
		return out, nil
	case difference == nil:
		difference = &DifferenceError{Agreed: c.agreed}
	}
	difference.Cause = failure
	difference.explain(in.Plan)
	return out, difference
}

// run replays a history and returns the steps that the code took, up to where it failed.
func (p Replayer) run(h *historypb.History) ([]step, error) {
	if lastTask(h) == 0 {
		return nil, nil // nothing was decided yet
	}
	seen := &recorder{}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:             []interceptor.WorkerInterceptor{seen},
		DisableDeadlockDetection: true, // a busy machine is no difference
	})
	if err != nil {
		return nil, fmt.Errorf("make replayer: %w", err)
	}
	replayer.RegisterWorkflowWithOptions(p.Agents.Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	err = replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
	return seen.steps, err
}

const mostOfCause = 400

// brief is what the SDK says, without the attributes of its commands.
func brief(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(text, "[TMPRL1100]"); i >= 0 {
		text = text[i:]
	}
	return "The SDK's replayer says: " + cut(text, mostOfCause)
}
