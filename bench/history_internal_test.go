package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"tarry/wire"
)

const modelType, toolType = wire.ActivityCallModel, "tool/function/read"

// writer writes a history, an event every millisecond.
type writer struct{ historypb.History }

func (w *writer) add(t enums.EventType, fill func(*historypb.HistoryEvent)) {
	n := len(w.Events) + 1
	e := &historypb.HistoryEvent{EventId: int64(n), EventType: t, EventTime: timestamppb.New(time.UnixMilli(int64(n)))}
	if fill != nil {
		fill(e)
	}
	w.Events = append(w.Events, e)
}

func (w *writer) task() {
	w.add(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, nil)
	w.add(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, nil)
	w.add(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, nil)
}

func payloads(size int) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(strings.Repeat("x", size))}}}
}

// activity runs one and the workflow task that follows.
func (w *writer) activity(name string, in, out int) {
	scheduled := int64(len(w.Events) + 1)
	w.add(enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: name}, Input: payloads(in), StartToCloseTimeout: durationpb.New(time.Minute), HeartbeatTimeout: durationpb.New(time.Second),
		}}
	})
	w.add(enums.EVENT_TYPE_ACTIVITY_TASK_STARTED, nil)
	w.add(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: scheduled, Result: payloads(out),
		}}
	})
	w.task()
}

func (w *writer) turn() {
	w.activity(modelType, 40, 60)
	w.activity(toolType, 20, 30)
}

func (w *writer) begin() {
	w.add(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{WorkflowTaskTimeout: durationpb.New(3 * time.Second)},
		}
	})
	w.task()
	w.activity("tarry.take", 2, 90)
}

func TestTurnsOfASession(t *testing.T) {
	t.Parallel()
	var w writer
	w.begin()
	w.turn()
	w.turn()
	w.activity(modelType, 40, 10) // the answer, then the next message
	w.activity("tarry.take", 2, 90)
	w.turn()
	w.activity(modelType, 40, 10)
	got := cut([]*historypb.History{&w.History})
	require.Len(t, got.turns, 3)
	require.Zero(t, got.split)
	require.Zero(t, got.repeated)
	bytes := 0
	for _, e := range w.Events[10:22] {
		bytes += proto.Size(e)
	}
	require.Equal(t, turn{events: 12, bytes: bytes, took: 12 * time.Millisecond, model: time.Millisecond, tool: time.Millisecond, tools: 1}, got.turns[0])
}

// A third activity in each turn must not hide behind what is left out.
func TestAnotherActivityCounts(t *testing.T) {
	t.Parallel()
	var w writer
	w.begin()
	for range 2 {
		w.turn()
		w.activity("tarry.state", 2, 2)
	}
	w.activity(modelType, 40, 10)
	events, _ := cut([]*historypb.History{&w.History}).perTurn()
	require.InDelta(t, 18, events, 0.001)
}

func TestTurnsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	var first, second writer
	first.begin()
	first.turn()
	first.turn()
	first.add(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, nil)
	second.begin()
	second.activity(modelType, 40, 60)
	second.add(enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, nil)
	second.activity(toolType, 20, 30)
	second.turn()
	second.activity(modelType, 40, 10)
	got := cut([]*historypb.History{&first.History, &second.History})
	require.Len(t, got.turns, 2)
	require.Equal(t, 1, got.split)
	require.Equal(t, 1, got.repeated)
	for _, one := range got.turns {
		require.Equal(t, 12, one.events)
	}
}

func TestShapeOfATurn(t *testing.T) {
	t.Parallel()
	var w writer
	w.begin()
	w.turn()
	w.activity(modelType, 40, 10)
	require.Equal(t, shape{
		ModelType: modelType, ToolType: toolType, ModelIn: 40, ModelOut: 60, ToolIn: 20, ToolOut: 30,
		Heartbeat: time.Second, TaskTimeout: 3 * time.Second, ModelTimeout: time.Minute, ToolTimeout: time.Minute,
	}, shapeOf(&w.History))
}

func TestBarePayloadsHaveTheSizesOfTheShape(t *testing.T) {
	t.Parallel()
	in := pad("60:", 40)
	require.Len(t, `"`+in+`"`, 40)
	out, err := answer(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, `"`+out+`"`, 60)
	_, err = answer(t.Context(), "x")
	require.Error(t, err)
}
