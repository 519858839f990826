package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"tarry/wire"
)

// feeder is a Temporal server that hands a worker the workflow tasks of a recorded history, one after the other, and
// compares what the worker decides with what the history says was decided.
type feeder struct {
	workflowservice.UnimplementedWorkflowServiceServer
	addr string
	// warm sends only what is new since the last task, as to a worker that has the workflow in memory.
	warm bool

	mu     sync.Mutex
	events []*historypb.HistoryEvent
	tasks  []int // positions of the WorkflowTaskCompleted events
	next   int
	given  bool // task next is with the worker
	wrong  []string
	change chan struct{} // closed when something happens
}

func newFeeder(t *testing.T, h *historypb.History, warm bool) *feeder {
	t.Helper()
	f := &feeder{warm: warm, events: h.GetEvents(), change: make(chan struct{})}
	for i, e := range f.events {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			f.tasks = append(f.tasks, i)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }() // it ends with Stop
	t.Cleanup(server.Stop)
	f.addr = listener.Addr().String()
	return f
}

// changed wakes those who wait; the lock is held.
func (f *feeder) changed() {
	close(f.change)
	f.change = make(chan struct{})
}

// until waits for a condition, which it looks at with the lock held.
func (f *feeder) until(ctx context.Context, is func() bool) bool {
	for {
		f.mu.Lock()
		ok, change := is(), f.change
		f.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-change:
		}
	}
}

func (f *feeder) over() bool { return f.next == len(f.tasks) || len(f.wrong) > 0 }

func (f *feeder) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{
		SignalAndQueryHeader: true, InternalErrorDifferentiation: true, EncodedFailureAttributes: true, SdkMetadata: true,
	}}, nil
}

func (f *feeder) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *feeder) ShutdownWorker(context.Context, *workflowservice.ShutdownWorkerRequest) (*workflowservice.ShutdownWorkerResponse, error) {
	return &workflowservice.ShutdownWorkerResponse{}, nil
}

func (f *feeder) PollWorkflowTaskQueue(ctx context.Context, _ *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	var task *workflowservice.PollWorkflowTaskQueueResponse
	f.until(ctx, func() bool {
		if f.given || f.over() {
			return false
		}
		f.given = true
		task = f.task()
		return true
	})
	if task == nil {
		task = &workflowservice.PollWorkflowTaskQueueResponse{}
	}
	return task, nil
}

// task is the next one.
func (f *feeder) task() *workflowservice.PollWorkflowTaskQueueResponse {
	started := f.started(f.next)
	var previous int64
	if f.next > 0 {
		previous = f.started(f.next - 1)
	}
	events := f.events[:started]
	if f.warm {
		events = f.events[previous:started]
	}
	return &workflowservice.PollWorkflowTaskQueueResponse{
		TaskToken:    []byte(strconv.Itoa(f.next)),
		WorkflowType: &commonpb.WorkflowType{Name: wire.WorkflowSession},
		WorkflowExecution: &commonpb.WorkflowExecution{
			WorkflowId: "fed", RunId: f.events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId(),
		},
		PreviousStartedEventId: previous, StartedEventId: started, Attempt: 1, History: &historypb.History{Events: events},
	}
}

// started is the id of the event with which a task began: ids count from 1.
func (f *feeder) started(task int) int64 {
	return f.events[f.tasks[task]].GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
}

// decided are the events that a task led to.
func (f *feeder) decided(task int) []*historypb.HistoryEvent {
	at := f.tasks[task] + 1
	end := at
	for end < len(f.events) && decision(f.events[end]) != "" {
		end++
	}
	return f.events[at:end]
}

// marker is what the marker of a local activity says.
type marker struct{ ActivityID, ActivityType string }

// markers are those of local activities.
func (f *feeder) markers(yield func(marker, *historypb.MarkerRecordedEventAttributes) bool) {
	for _, e := range f.events {
		a := e.GetMarkerRecordedEventAttributes()
		var m marker
		if a.GetMarkerName() == "LocalActivity" && json.Unmarshal(a.GetDetails()["data"].GetPayloads()[0].GetData(), &m) == nil && !yield(m, a) {
			return
		}
	}
}

// locals are the types of local activities.
func (f *feeder) locals() map[string]bool {
	out := map[string]bool{}
	for m := range f.markers {
		out[m.ActivityType] = true
	}
	return out
}

// local returns the recorded result of a local activity, by its id.
func (f *feeder) local(id string) json.RawMessage {
	for m, a := range f.markers {
		if result := a.GetDetails()["result"].GetPayloads(); m.ActivityID == id && len(result) > 0 {
			return result[0].GetData()
		}
	}
	return json.RawMessage("null")
}

func (f *feeder) RespondWorkflowTaskCompleted(_ context.Context, r *workflowservice.RespondWorkflowTaskCompletedRequest) (*workflowservice.RespondWorkflowTaskCompletedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.changed()
	var want, got []string
	for _, e := range f.decided(f.next) {
		want = append(want, decision(e))
	}
	for _, c := range r.GetCommands() {
		got = append(got, command(c))
	}
	if newer := func(s string) bool { return s == "marker Version" }; slices.ContainsFunc(got, newer) && !slices.ContainsFunc(want, newer) {
		f.next = len(f.tasks) // the run is older than a change, and goes on as a new one would: that is no replay any more
		return &workflowservice.RespondWorkflowTaskCompletedResponse{}, nil
	}
	slices.Sort(want) // local activities that run at once end in any order
	slices.Sort(got)
	if !slices.Equal(want, got) {
		f.wrong = append(f.wrong, fmt.Sprintf("task of event %d: the history has\n  %s\nthe worker\n  %s",
			f.started(f.next), strings.Join(want, "\n  "), strings.Join(got, "\n  ")))
	}
	f.next, f.given = f.next+1, false
	return &workflowservice.RespondWorkflowTaskCompletedResponse{}, nil
}

func (f *feeder) RespondWorkflowTaskFailed(_ context.Context, r *workflowservice.RespondWorkflowTaskFailedRequest) (*workflowservice.RespondWorkflowTaskFailedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.changed()
	f.wrong = append(f.wrong, fmt.Sprintf("task of event %d fails: %v", f.started(f.next), r.GetFailure()))
	return &workflowservice.RespondWorkflowTaskFailedResponse{}, nil
}

// GetWorkflowExecutionHistory is asked for by a worker that was expected to have the workflow in memory.
func (f *feeder) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.changed()
	f.wrong = append(f.wrong, "the workflow is not in memory")
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: f.events[:f.started(f.next)]}}, nil
}

// decision describes what a workflow task led to; empty if it did not.
func decision(e *historypb.HistoryEvent) string {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		return activityOf(a.GetActivityId(), a.GetActivityType(), a.GetInput())
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		return fmt.Sprint("cancel activity ", e.GetActivityTaskCancelRequestedEventAttributes().GetScheduledEventId())
	case enums.EVENT_TYPE_TIMER_STARTED:
		return "timer " + e.GetTimerStartedEventAttributes().GetTimerId()
	case enums.EVENT_TYPE_TIMER_CANCELED:
		return "cancel timer " + e.GetTimerCanceledEventAttributes().GetTimerId()
	case enums.EVENT_TYPE_MARKER_RECORDED:
		return "marker " + e.GetMarkerRecordedEventAttributes().GetMarkerName()
	case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return "status " + attributesOf(e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes())
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return "done"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return "continue" // what is carried may gain fields
	default:
		return ""
	}
}

// command describes the same of what a worker answers.
func command(c *commandpb.Command) string {
	switch c.GetCommandType() {
	case enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
		a := c.GetScheduleActivityTaskCommandAttributes()
		return activityOf(a.GetActivityId(), a.GetActivityType(), a.GetInput())
	case enums.COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
		return fmt.Sprint("cancel activity ", c.GetRequestCancelActivityTaskCommandAttributes().GetScheduledEventId())
	case enums.COMMAND_TYPE_START_TIMER:
		return "timer " + c.GetStartTimerCommandAttributes().GetTimerId()
	case enums.COMMAND_TYPE_CANCEL_TIMER:
		return "cancel timer " + c.GetCancelTimerCommandAttributes().GetTimerId()
	case enums.COMMAND_TYPE_RECORD_MARKER:
		return "marker " + c.GetRecordMarkerCommandAttributes().GetMarkerName()
	case enums.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return "status " + attributesOf(c.GetUpsertWorkflowSearchAttributesCommandAttributes().GetSearchAttributes())
	case enums.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION:
		return "done"
	case enums.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
		return "continue"
	case enums.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION:
		return "fail " + c.GetFailWorkflowExecutionCommandAttributes().GetFailure().String()
	default:
		return c.GetCommandType().String()
	}
}

func activityOf(id string, kind *commonpb.ActivityType, in *commonpb.Payloads) string {
	return fmt.Sprintf("activity %s %s %s", id, kind.GetName(), in.GetPayloads()[0].GetData())
}

func attributesOf(a *commonpb.SearchAttributes) string {
	return string(a.GetIndexedFields()[wire.AttributeStatus].GetData())
}
