package replay

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

type kind int

const (
	kindActivity kind = iota
	kindLocal
	kindTimer
	kindStatus // of the search attributes
	kindEnd
)

// Endings of a run.
const (
	endDone      = "done"
	endContinued = "continued"
	endCancelled = "cancelled"
	endFailed    = "failed"
)

// step is one thing that a workflow does: as a history has it, or as the code takes it.
type step struct {
	kind  kind
	name  string // of the activity, or the ending
	input []byte // of an activity; histories hold none of local activities
	wait  time.Duration
	event int64 // 0 for the code's
	// task is the event at which the workflow task began.
	task int64
	// dropped says that the code cancelled it in the task that it began in, so that nothing of it stands in history. Nil for
	// the history's.
	dropped func() bool
}

// same compares what the SDK's replayer compares, and the whole name of an activity.
func (s step) same(other step) bool { return s.kind == other.kind && s.name == other.name }

func (s step) is(k kind) bool { return s.kind == k }

// What the SDK calls its markers.
const (
	markerLocal   = "LocalActivity"
	markerVersion = "Version"
	changeVersion = "TemporalChangeVersion"
)

// local is what the SDK writes into the marker of a local activity. There is no input among it.
type local struct {
	ActivityID   string
	ActivityType string
	Backoff      time.Duration
}

// stepsOf reads what a history says the workflow did.
func stepsOf(h *historypb.History) ([]step, error) {
	var out []step
	began := map[int64]int64{} // WorkflowTaskCompleted → WorkflowTaskStarted
	for _, e := range h.GetEvents() {
		s := step{event: e.GetEventId()}
		var completed int64
		switch e.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			began[e.GetEventId()] = e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
			continue
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			a := e.GetActivityTaskScheduledEventAttributes()
			s.kind, s.name, s.input, completed = kindActivity, a.GetActivityType().GetName(), joined(a.GetInput()), a.GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_TIMER_STARTED:
			a := e.GetTimerStartedEventAttributes()
			s.kind, s.wait, completed = kindTimer, a.GetStartToFireTimeout().AsDuration(), a.GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_MARKER_RECORDED:
			a := e.GetMarkerRecordedEventAttributes()
			if a.GetMarkerName() != markerLocal {
				continue
			}
			var data local
			if err := json.Unmarshal(joined(a.GetDetails()["data"]), &data); err != nil {
				return nil, fmt.Errorf("%w: event %d is a marker without its data", ErrHistory, e.GetEventId())
			}
			if data.Backoff > 0 {
				continue // it was tried again, which is another marker
			}
			s.kind, s.name, completed = kindLocal, data.ActivityType, a.GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			a := e.GetUpsertWorkflowSearchAttributesEventAttributes()
			if _, ok := a.GetSearchAttributes().GetIndexedFields()[changeVersion]; ok {
				continue // what GetVersion writes
			}
			s.kind, completed = kindStatus, a.GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			s.kind, s.name, completed = kindEnd, endDone, e.GetWorkflowExecutionCompletedEventAttributes().GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
			s.kind, s.name, completed = kindEnd, endContinued, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
			s.kind, s.name, completed = kindEnd, endCancelled, e.GetWorkflowExecutionCanceledEventAttributes().GetWorkflowTaskCompletedEventId()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
			s.kind, s.name, completed = kindEnd, endFailed, e.GetWorkflowExecutionFailedEventAttributes().GetWorkflowTaskCompletedEventId()
		default: // not the workflow's doing, or for the SDK's replayer alone
			continue
		}
		s.task = began[completed]
		out = append(out, s)
	}
	return out, nil
}

// lastTask is the event at which the last workflow task began that came to its end: what the code does after it is not
// history yet.
func lastTask(h *historypb.History) (started int64) {
	for _, e := range h.GetEvents() {
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			started = a.GetStartedEventId()
		}
	}
	return started
}
