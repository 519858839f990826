package main

import (
	"bytes"
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"tarry/replay"
	"tarry/wire"
)

// What a turn may cost: one model call and one tool call, and what each further tool call beside it adds; and what a wait
// for a login may, its repeated call apart.
const (
	turnEvents    = 12
	turnBytes     = 1638
	furtherEvents = 6
	loginEvents   = 14
)

// turn is the part of a history from one model call to the next.
type turn struct {
	events, bytes, tools int
	// whole says that nothing but the turn lies in it: the last one ends with the invocation, others may hold a listing or
	// a wait.
	whole bool
}

func readHistory(body []byte) (*historypb.History, error) {
	h, err := temporal.HistoryFromJSON(bytes.NewReader(body), temporal.HistoryJSONOptions{})
	if err != nil {
		return nil, failed("read history: %w", err)
	}
	return h, nil
}

// turns cuts a history at the model calls. What comes before the first is the overhead of the invocation.
func turns(h *historypb.History) []turn {
	var out []turn
	for _, e := range h.GetEvents() {
		scheduled := e.GetActivityTaskScheduledEventAttributes()
		name := scheduled.GetActivityType().GetName()
		if name == wire.ActivityCallModel {
			out = append(out, turn{whole: true})
		}
		if len(out) == 0 {
			continue
		}
		t := &out[len(out)-1]
		t.events++
		t.bytes += proto.Size(e)
		switch {
		case wire.IsToolActivity(name):
			t.tools++
		case scheduled != nil && name != wire.ActivityCallModel,
			e.GetWorkflowExecutionSignaledEventAttributes() != nil,
			e.GetWorkflowExecutionCompletedEventAttributes() != nil,
			e.GetWorkflowExecutionContinuedAsNewEventAttributes() != nil:
			t.whole = false
		}
	}
	return out
}

// waitEvents counts what lies between the end of the listing that asked for a login and its repeat, or 0.
func waitEvents(h *historypb.History) int {
	var listed, ended int64
	for _, e := range h.GetEvents() {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == wire.ActivityListTools {
			if ended != 0 {
				return int(e.GetEventId() - ended - 1)
			}
			listed = e.GetEventId()
		}
		if done := e.GetActivityTaskCompletedEventAttributes(); done != nil && done.GetScheduledEventId() == listed {
			ended = e.GetEventId()
		}
	}
	return 0
}

// checkHistory measures the history and runs it against the code.
func (s *stage) checkHistory(ctx context.Context, body []byte) error {
	h, err := readHistory(body)
	if err != nil {
		return err
	}
	size := 0
	for _, e := range h.GetEvents() {
		size += proto.Size(e)
	}
	s.fact("history", fmt.Sprintf("%d events, %d bytes", len(h.GetEvents()), size))
	wait := waitEvents(h)
	s.check("  wait for the login", wait > 0 && wait <= loginEvents, fmt.Sprintf("%d events", wait))
	for i, t := range turns(h) {
		what := fmt.Sprintf("  turn %d, tool calls: %d", i+1, t.tools)
		value := fmt.Sprintf("%d events, %d bytes", t.events, t.bytes)
		if !t.whole {
			s.fact(what, value+", the end of the invocation included")
			continue
		}
		further := max(0, t.tools-1)
		held := t.events <= turnEvents+further*furtherEvents && t.bytes <= turnBytes*(1+further)
		s.check(what, held, value)
	}
	result, err := replay.Reader(ctx, bytes.NewReader(body))
	if err != nil {
		s.check("the history fits the code", false, brief(err.Error()))
		return nil
	}
	s.check("the history fits the code", true, fmt.Sprintf("%d events, %d activities replayed", result.Events, result.Activities))
	return nil
}
