package main

import (
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"tarry/wire"
)

// turn is what one turn cost.
type turn struct {
	events, bytes int
	took          time.Duration
	// model and tool are the parts of took in which an activity ran, from started to completed.
	model, tool time.Duration
	// tools counts the calls of tools; without any it is no turn, but an answer and what comes between invocations.
	tools int
	// repeated says that the server ran a workflow task or an activity again: its load, not the loop's cost.
	repeated bool
}

// session is what was measured of one session.
type session struct {
	turns []turn
	// split counts the turns across which the run continued as new, and repeated those that are left out as such.
	split, repeated int
}

// cut finds the turns in the runs of a session, in order.
func cut(runs []*historypb.History) (out session) {
	for _, run := range runs {
		var t *turn
		var began, started time.Time
		for _, e := range run.GetEvents() {
			name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			if name == wire.ActivityCallModel {
				now := e.GetEventTime().AsTime()
				out.add(t, now.Sub(began))
				t, began = &turn{}, now
			}
			if t == nil {
				continue
			}
			t.events++
			t.bytes += proto.Size(e)
			switch {
			case wire.IsToolActivity(name):
				t.tools++
			case e.GetEventType() == enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
				started = e.GetEventTime().AsTime()
			case e.GetEventType() == enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED && t.tools == 0:
				t.model = e.GetEventTime().AsTime().Sub(started)
			case e.GetEventType() == enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
				t.tool = e.GetEventTime().AsTime().Sub(started)
			}
			t.repeated = t.repeated || again(e.GetEventType())
		}
		if t != nil && t.tools > 0 {
			out.split++
		}
	}
	return out
}

func (s *session) add(t *turn, took time.Duration) {
	switch {
	case t == nil || t.tools == 0:
	case t.repeated:
		s.repeated++
	default:
		t.took = took
		s.turns = append(s.turns, *t)
	}
}

// again says that an event belongs to a workflow task that is run again, or that an activity was.
func again(t enums.EventType) bool {
	switch t {
	case enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, enums.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		return true
	default:
		return false
	}
}

// shapeOf reads off a history what the bare workflow has to imitate.
func shapeOf(run *historypb.History) (s shape) {
	scheduled := map[int64]string{}
	for _, e := range run.GetEvents() {
		if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			s.TaskTimeout = a.GetWorkflowTaskTimeout().AsDuration()
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			name, in, timeout := a.GetActivityType().GetName(), 0, a.GetStartToCloseTimeout().AsDuration()
			for _, p := range a.GetInput().GetPayloads() {
				in += len(p.GetData())
			}
			scheduled[e.GetEventId()] = name
			switch {
			case name == wire.ActivityCallModel:
				s.ModelType, s.ModelIn, s.ModelTimeout, s.Heartbeat = name, in, timeout, a.GetHeartbeatTimeout().AsDuration()
			case wire.IsToolActivity(name):
				s.ToolType, s.ToolIn, s.ToolTimeout = name, in, timeout
			}
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			out := 0
			for _, p := range a.GetResult().GetPayloads() {
				out += len(p.GetData())
			}
			switch scheduled[a.GetScheduledEventId()] {
			case "":
			case s.ModelType:
				s.ModelOut = max(s.ModelOut, out) // the last answer calls nothing
			case s.ToolType:
				s.ToolOut = out
			}
		}
	}
	return s
}
