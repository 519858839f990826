package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	bareQueue    = "bench" // as long as the name of Tarry's
	bareWorkflow = "bench.session"
)

// shape is what the activities of a turn have on the wire: the sizes of their payloads, in bytes, and their names.
type shape struct {
	ModelType, ToolType       string
	ModelIn, ModelOut         int
	ToolIn, ToolOut           int
	Summary                   string
	Heartbeat, TaskTimeout    time.Duration
	ModelTimeout, ToolTimeout time.Duration
}

// bareInput is the bare workflow's.
type bareInput struct {
	Turns int
	Shape shape
}

// bare calls a model and a tool so many times, and the model once more.
func bare(ctx workflow.Context, in bareInput) error {
	call := func(name string, timeout time.Duration, summary string, size, result int) error {
		ctx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: timeout, HeartbeatTimeout: in.Shape.Heartbeat, WaitForCancellation: true, Summary: summary,
			RetryPolicy: &temporal.RetryPolicy{
				InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: 20,
				NonRetryableErrorTypes: []string{"tarry.final"},
			},
		})
		var out string
		return workflow.ExecuteActivity(ctx, name, pad(strconv.Itoa(result)+":", size)).Get(ctx, &out)
	}
	s := in.Shape
	for range in.Turns {
		if err := call(s.ModelType, s.ModelTimeout, s.Summary, s.ModelIn, s.ModelOut); err != nil {
			return err
		}
		if err := call(s.ToolType, s.ToolTimeout, "", s.ToolIn, s.ToolOut); err != nil {
			return err
		}
	}
	return call(s.ModelType, s.ModelTimeout, s.Summary, s.ModelIn, s.ModelOut)
}

// pad makes a text that is size bytes of JSON, if text is not longer already.
func pad(text string, size int) string {
	return text + strings.Repeat("x", max(0, size-len(text)-len(`""`)))
}

// answer returns a text of the size that the input begins with.
func answer(_ context.Context, in string) (string, error) {
	size, _, _ := strings.Cut(in, ":")
	n, err := strconv.Atoi(size)
	if err != nil {
		return "", fmt.Errorf("size of the result: %w", err)
	}
	return pad("", n), nil
}

// workBare runs the bare workflow until stdin ends: with its parent, however that ended. types are the activities' names,
// separated by a comma.
func workBare(ctx context.Context, address, types string, stdin io.Reader) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, ConnectionOptions: connection(), Logger: log.NewStructuredLogger(slog.New(slog.NewJSONHandler(os.Stderr, nil)))})
	if err != nil {
		return fmt.Errorf("connect to Temporal at %s: %w", address, err)
	}
	defer c.Close()
	w := worker.New(c, bareQueue, worker.Options{ // those of Tarry's worker
		Identity: "b" + rand.Text()[:6], WorkerStopTimeout: 10 * time.Second,
		MaxHeartbeatThrottleInterval: time.Second, DefaultHeartbeatThrottleInterval: time.Second,
	})
	w.RegisterWorkflowWithOptions(bare, workflow.RegisterOptions{Name: bareWorkflow})
	for name := range strings.SplitSeq(types, ",") {
		w.RegisterActivityWithOptions(answer, activity.RegisterOptions{Name: name})
	}
	if err := w.Start(); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	defer w.Stop()
	_, _ = io.Copy(io.Discard, stdin)
	return nil
}
