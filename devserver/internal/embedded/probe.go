package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/primitives"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	probeName     = "tarry-devserver-probe"
	probeTimeout  = 60 * time.Second
	probeInterval = 20 * time.Millisecond
)

// probe proves that the server at addr works: a workflow is started, goes through history and matching, and completes.
// It runs in the system namespace, so that users never see it; of theirs it checks that the search attributes can be
// queried.
func probe(ctx context.Context, addr string, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer conn.Close()
	service := workflowservice.NewWorkflowServiceClient(conn)

	if err := probeWorkflow(ctx, service); err != nil {
		return fmt.Errorf("probe workflow did not complete: %w", err)
	}
	if err := probeNamespace(ctx, service, o); err != nil {
		return fmt.Errorf("probe namespace %s: %w", o.Namespace, err)
	}
	return nil
}

func probeWorkflow(ctx context.Context, service workflowservice.WorkflowServiceClient) error {
	id := probeName + "-" + primitives.NewUUID().String()
	queue := &taskqueuepb.TaskQueue{Name: probeName, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}
	var runID string
	err := retry(ctx, func() error {
		started, err := service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
			Namespace:                primitives.SystemLocalNamespace,
			WorkflowId:               id,
			WorkflowType:             &commonpb.WorkflowType{Name: probeName},
			TaskQueue:                queue,
			WorkflowExecutionTimeout: durationpb.New(probeTimeout),
			Identity:                 probeName,
			RequestId:                id,
		})
		runID = started.GetRunId()
		return err //nolint:wrapcheck // probe adds the operation
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	// A task of a probe that was killed may come first: all of them are completed.
	for {
		completed, err := completeOneTask(ctx, service, queue)
		if err != nil {
			return err
		}
		if completed == runID {
			return nil
		}
	}
}

// completeOneTask returns the run that it completed, or an empty string.
func completeOneTask(
	ctx context.Context, service workflowservice.WorkflowServiceClient, queue *taskqueuepb.TaskQueue,
) (string, error) {
	var task *workflowservice.PollWorkflowTaskQueueResponse
	if err := retry(ctx, func() (err error) {
		task, err = service.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: primitives.SystemLocalNamespace,
			TaskQueue: queue,
			Identity:  probeName,
		})
		return err //nolint:wrapcheck // probe adds the operation
	}); err != nil {
		return "", fmt.Errorf("poll: %w", err)
	}
	if len(task.GetTaskToken()) == 0 {
		return "", nil
	}
	err := retry(ctx, func() error {
		_, err := service.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
			Namespace: primitives.SystemLocalNamespace,
			TaskToken: task.GetTaskToken(),
			Identity:  probeName,
			Commands: []*commandpb.Command{{
				CommandType: enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
				Attributes: &commandpb.Command_CompleteWorkflowExecutionCommandAttributes{
					CompleteWorkflowExecutionCommandAttributes: &commandpb.CompleteWorkflowExecutionCommandAttributes{},
				},
			}},
		})
		return err //nolint:wrapcheck // probe adds the operation
	})
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("complete: %w", err)
	}
	return task.GetWorkflowExecution().GetRunId(), nil
}

func probeNamespace(ctx context.Context, service workflowservice.WorkflowServiceClient, o Options) error {
	query := ""
	for _, name := range slices.Sorted(maps.Keys(o.SearchAttributes)) {
		if query != "" {
			query += " AND "
		}
		query += "`" + name + "` IS NOT NULL"
	}
	return retry(ctx, func() error {
		_, err := service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: o.Namespace,
			Query:     query,
		})
		return err //nolint:wrapcheck // probe adds the operation
	})
}

// retry repeats the call while services are starting: the last error stands if they never do.
func retry(ctx context.Context, call func() error) error {
	for {
		err := serviceerror.FromStatus(status.Convert(call()))
		if err == nil || !temporary(err) {
			return err //nolint:wrapcheck // the caller names the operation
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(probeInterval):
		}
	}
}

func temporary(err error) bool {
	var noNamespace *serviceerror.NamespaceNotFound // a cache that is still empty
	if errors.As(err, &noNamespace) {
		return true
	}
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted:
		return true
	default:
		return false
	}
}
