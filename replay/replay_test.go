package replay_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"tarry/replay"
	"tarry/workflows"
)

// history reads a fixture of package workflows.
func history(t *testing.T, name string) *historypb.History {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../workflows/testdata/histories", name+".json"))
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(bytes.NewReader(body), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// scheduled lists the events that schedule activities of a type.
func scheduled(t *testing.T, h *historypb.History, activity string) (out []*historypb.ActivityTaskScheduledEventAttributes) {
	t.Helper()
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); strings.HasPrefix(a.GetActivityType().GetName(), activity) {
			out = append(out, a)
		}
	}
	require.NotEmpty(t, out)
	return out
}

func TestHistoryFits(t *testing.T) {
	t.Parallel()
	r, err := replay.History(t.Context(), history(t, "granted"))
	require.NoError(t, err)
	require.Equal(t, len(history(t, "granted").GetEvents()), r.Events)
	require.Equal(t, 6, r.Activities)
	require.Equal(t, 2, r.Locals)
	require.Zero(t, r.Timers)
}

// edit replaces text in a payload.
func edit(t *testing.T, p *commonpb.Payloads, from, to string) {
	t.Helper()
	require.Contains(t, string(p.GetPayloads()[0].GetData()), from)
	p.Payloads[0].Data = bytes.Replace(p.Payloads[0].GetData(), []byte(from), []byte(to), 1)
}

// start is the start input.
func start(h *historypb.History) *commonpb.Payloads {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
}

// answer is the result of the first model call.
func answer(t *testing.T, h *historypb.History) *commonpb.Payloads {
	t.Helper()
	id := scheduled(t, h, "tarry.call_model")[0].GetActivityId() // the SDK's: that of the event
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && strconv.FormatInt(a.GetScheduledEventId(), 10) == id {
			return a.GetResult()
		}
	}
	require.Fail(t, "it has no result")
	return nil
}

// event finds the first that is asked for.
func event(t *testing.T, h *historypb.History, is func(*historypb.HistoryEvent) bool) *historypb.HistoryEvent {
	t.Helper()
	i := slices.IndexFunc(h.GetEvents(), is)
	require.NotEqual(t, -1, i)
	return h.GetEvents()[i]
}

// What is noticed, and what is said about it. The SDK's replayer notices no other input (pitfall T8) and no other duration.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of     string
		change func(t *testing.T, h *historypb.History)
		want   replay.DifferenceError
		sdk    string // what the SDK's replayer says; empty if it notices nothing
	}{
		"an activity's input": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, scheduled(t, h, "tarry.call_model")[1].GetInput(), `"heads":["`, `"heads":["x`)
		}, want: replay.DifferenceError{Event: 44, Then: `called the model of agent granted with heads ["x`, Now: `do so with heads ["`, Fields: []string{"heads"}, Agreed: 6, Reason: "another input"}},
		"another agent's model": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, scheduled(t, h, "tarry.call_model")[1].GetInput(), `"agent":"granted"`, `"agent":"another"`)
		}, want: replay.DifferenceError{Event: 44, Then: "called the model of agent another", Now: "call the model of agent granted", Fields: []string{"agent"}, Agreed: 6, Reason: "has no agent another"}},
		"the call that runs again": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, scheduled(t, h, "tool/")[1].GetInput(), `,"answered":"`, `,"call_2":"`)
		}, want: replay.DifferenceError{Event: 38, Then: "called tool mcp/list_tickets with no answered and call_2 ", Now: "do so with answered ", Fields: []string{"answered", "call_2"}, Agreed: 5, Reason: "another input"}},
		"the order": {of: "parallel", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			calls := scheduled(t, h, "tool/")
			calls[0].ActivityType, calls[1].ActivityType = calls[1].GetActivityType(), calls[0].GetActivityType()
			calls[0].Input, calls[1].Input = calls[1].GetInput(), calls[0].GetInput()
		}, want: replay.DifferenceError{Event: 31, Then: "called tool mcp/list_tickets", Now: "call tool mcp_2/note", Agreed: 4, Reason: "order or the choice"}, sdk: "nondeterministic workflow"},
		"another tool": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			scheduled(t, h, "tool/")[0].ActivityType.Name = "tool/mcp/drop%2Etables"
		}, want: replay.DifferenceError{Event: 25, Then: "called tool mcp/drop.tables", Now: "call tool mcp/list_tickets", Agreed: 3, Reason: "change id"}, sdk: "nondeterministic workflow"},
		// The SDK compares what follows the last dot alone.
		"another activity with the same end": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			scheduled(t, h, "tarry.take")[0].ActivityType.Name = "theirs.take"
		}, want: replay.DifferenceError{Event: 6, Then: "ran activity theirs.take", Now: "take the next message"}},
		"a step that the code does not take": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, answer(t, h), `,"calls":`, `,"Calls_":`)
		}, want: replay.DifferenceError{Event: 25, Then: "called tool mcp/list_tickets", Now: "end the invocation as done", Agreed: 3, Reason: "order or the choice"}, sdk: "TMPRL1100"},
		"a step that only the code takes": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, answer(t, h), `"calls":[`, `"calls":[{"id":"adk-other","tool":"mcp/other"},`)
		}, want: replay.DifferenceError{Event: 25, Now: "call tool mcp/other", Agreed: 3, Reason: "added"}, sdk: "TMPRL1100"},
		"another step beside": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, answer(t, h), `"mcp/list_tickets"}`, `"mcp/list_tickets"},{"id":"adk-other","tool":"mcp/other"}`)
		}, want: replay.DifferenceError{Event: 31, Now: "call tool mcp/other", Agreed: 4, Reason: "added"}, sdk: "TMPRL1100"},
		"one step less beside": {of: "parallel", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, answer(t, h), `"id":"`, `"answer":"ev","id":"`)
		}, want: replay.DifferenceError{Event: 31, Then: "called tool mcp_2/note", Agreed: 4, Reason: "taken out"}, sdk: "TMPRL1100"},
		"a step after all": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			h.Events = h.GetEvents()[:24]
			require.NotNil(t, h.GetEvents()[23].GetWorkflowTaskCompletedEventAttributes())
		}, want: replay.DifferenceError{Now: "call tool mcp/list_tickets", Agreed: 3, Reason: "added"}, sdk: "extra replay command"},
		"another timer": {of: "expired", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			timer := event(t, h, func(e *historypb.HistoryEvent) bool { return e.GetTimerStartedEventAttributes() != nil })
			timer.GetTimerStartedEventAttributes().StartToFireTimeout = durationpb.New(time.Hour)
		}, want: replay.DifferenceError{Event: 33, Then: "set a timer of 1h0m0s", Now: "set a timer of 1.9", Agreed: 5, Reason: "another input"}},
		"another local activity": {of: "denied", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			marker := event(t, h, func(e *historypb.HistoryEvent) bool { return e.GetEventId() == 38 })
			edit(t, marker.GetMarkerRecordedEventAttributes().GetDetails()["data"], "tarry.settle", "tarry.forget")
		}, want: replay.DifferenceError{Event: 38, Then: "ran activity tarry.forget", Now: "answer a call without running it as denied", Agreed: 5}, sdk: "code executed local activity"},
		"another end": {of: "continued_run1", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			signal := event(t, h, func(e *historypb.HistoryEvent) bool {
				return e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == "tarry.continue_as_new"
			})
			signal.GetWorkflowExecutionSignaledEventAttributes().SignalName = "tarry.other"
		}, want: replay.DifferenceError{Event: 48, Then: "continued as new", Now: "call the model of agent continued", Agreed: 6}, sdk: "nondeterministic"},
		"the plan's name": {of: "no_tools", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, start(h), `"name":"no_tools"`, `"name":"other"`)
		}, want: replay.DifferenceError{Event: 13, Then: "called the model of agent no_tools", Now: "call the model of agent other", Fields: []string{"agent"}, Agreed: 1, Reason: "has no agent no_tools"}},
		"a plan with less": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, start(h), `,"toolsets":["mcp"]`, ``)
		}, want: replay.DifferenceError{Event: 13, Then: "listed the tools of mcp for agent granted", Now: "call the model of agent granted", Agreed: 1, Reason: "order or the choice"}, sdk: "TMPRL1100"},
		"a plan of a newer version": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, start(h), `"toolsets"`, `"tool_shelves"`)
		}, want: replay.DifferenceError{Event: 1, Then: `was started with field "tool_shelves"`, Reason: "newer version"}},
		"a kind of a newer version": {of: "granted", change: func(t *testing.T, h *historypb.History) {
			t.Helper()
			edit(t, start(h), `"LlmAgent"`, `"OracleAgent"`)
		}, want: replay.DifferenceError{Event: 1, Then: `was started with agent granted of kind "OracleAgent"`, Reason: "newer version"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, tc.of)
			tc.change(t, h)
			_, err := replay.History(t.Context(), h)
			require.ErrorIs(t, err, replay.ErrMismatch)
			var got *replay.DifferenceError
			require.ErrorAs(t, err, &got)
			require.Equal(t, tc.want.Event, got.Event, got)
			require.Contains(t, got.Then, tc.want.Then)
			require.Contains(t, got.Now, tc.want.Now)
			require.Equal(t, tc.want.Then == "", got.Then == "", got)
			require.Equal(t, tc.want.Fields, got.Fields)
			require.Equal(t, tc.want.Agreed, got.Agreed, got)
			require.Contains(t, got.Reason, tc.want.Reason)
			if tc.sdk == "" {
				require.NoError(t, got.Cause)
			} else {
				require.ErrorContains(t, got.Cause, tc.sdk)
			}
			for range 3 {
				_, again := replay.History(t.Context(), h)
				require.EqualError(t, again, err.Error(), "the same each time")
			}
		})
	}
}

// The text names event, what was done, what would be done, how far both agree, and what mends it.
func TestDifferenceText(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]replay.DifferenceError{
		"event 23: the run called tool a/b; the code would end. The first 4 activities agree. Mend it":  {Event: 23, Then: "called tool a/b", Now: "end", Agreed: 4, Reason: "Mend it"},
		"event 23: the run called tool a/b; the code would not. The first activity agrees":              {Event: 23, Then: "called tool a/b", Agreed: 1},
		"before event 23: the run did nothing more; the code would also end. No activity agrees before": {Event: 23, Now: "end"},
		"at its end: the run did nothing more; the code would also end. The first 2 activities agree":   {Now: "end", Agreed: 2},
		"the code does not lead to it. The first 2 activities agree. The SDK says so":                   {Agreed: 2, Reason: "The SDK says so"},
	} {
		require.EqualError(t, &d, want)
		require.ErrorIs(t, &d, replay.ErrMismatch)
	}
}

// Where the code stops for another reason than its steps, the SDK's words say why.
func TestHistoryThatContradictsItself(t *testing.T) {
	t.Parallel()
	h := history(t, "loop")
	at := event(t, h, func(e *historypb.HistoryEvent) bool { return e.GetActivityTaskCompletedEventAttributes() != nil })
	at.GetActivityTaskCompletedEventAttributes().ScheduledEventId = 999
	_, err := replay.History(t.Context(), h)
	require.ErrorIs(t, err, replay.ErrMismatch)
	require.ErrorContains(t, err, "The SDK's replayer says: [TMPRL1100] ")
}

// A session with custom agents needs them, at any depth of its plan; what is registered is named.
func TestCustomAgentsMustBeThere(t *testing.T) {
	t.Parallel()
	story := func(*workflows.Agent) error { return nil }
	for name, tc := range map[string]struct {
		plan   string
		agents workflows.Agents
		says   string
	}{
		"none is registered": {`"kind":"CustomAgent","custom":"story_flow"`, nil, `agent granted is the Go function "story_flow", and none is registered`},
		"another is":         {`"kind":"CustomAgent","custom":"story_flow"`, workflows.Agents{"story": story, "poem": story}, "registered are poem, story"},
		"below":              {`"kind":"SequentialAgent","children":[{"name":"x","kind":"LlmAgent","agent_tools":[{"name":"deep","kind":"CustomAgent","custom":"story_flow"}]}]`, nil, "agent deep is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, "granted")
			edit(t, start(h), `"kind":"LlmAgent"`, tc.plan)
			_, err := replay.Replayer{Agents: tc.agents}.History(t.Context(), h)
			require.ErrorIs(t, err, replay.ErrAgents)
			require.NotErrorIs(t, err, replay.ErrMismatch)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, "replay.Replayer{Agents")
		})
	}
}

// What an app's own agents do is checked as the rest is: a change without a version is found, one with a version fits.
func TestCustomAgents(t *testing.T) {
	t.Parallel()
	run := func(a *workflows.Agent) error {
		_, err := a.Run("no_tools")
		return err
	}
	say := func(a *workflows.Agent) error {
		return a.Emit(workflows.Emission{Text: "Once upon a time"})
	}
	for name, tc := range map[string]struct {
		agent workflows.AgentFunc
		says  []string // nothing: it fits
	}{
		"as it was": {run, nil},
		"more at its end": {func(a *workflows.Agent) error { return errors.Join(run(a), say(a)) }, []string{
			"event 19: the run ended the invocation; the code would append an event of agent story", "Likely a custom agent was changed (story): put the change behind Agent.Version",
		}},
		"more, for new runs": {func(a *workflows.Agent) error {
			if err := run(a); err != nil || a.Version("say", -1, 1) < 1 {
				return err
			}
			return say(a)
		}, nil},
		"nothing": {func(*workflows.Agent) error { return nil }, []string{"event 13: the run called the model of agent no_tools; the code would end the invocation as done"}},
		"a panic": {func(*workflows.Agent) error { panic("no plot") }, []string{"event 13: the run called the model of agent no_tools; the code would not", "no plot"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, "no_tools")
			edit(t, start(h), `{"name":"no_tools","kind":"LlmAgent"}`, `{"name":"story","kind":"CustomAgent","custom":"story_flow","children":[{"name":"no_tools","kind":"LlmAgent"}]}`)
			_, err := replay.Replayer{Agents: workflows.Agents{"story_flow": tc.agent}}.History(t.Context(), h)
			if tc.says == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, replay.ErrMismatch)
			for _, part := range tc.says {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestNoHistory(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "no JSON": "hello", "another JSON": `{"a": 1}`, "no events": `{"events": []}`,
		"no beginning":     `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_TASK_SCHEDULED","workflowTaskScheduledEventAttributes":{}}]}`,
		"only its start":   `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","workflowExecutionStartedEventAttributes":{"workflowType":{"name":"tarry.session"}}}]}`,
		"half a history":   `{"events":[{"eventId":"1",`,
		"another workflow": `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","workflowExecutionStartedEventAttributes":{"workflowType":{"name":"theirs"}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := replay.Reader(t.Context(), strings.NewReader(text))
			require.ErrorIs(t, err, replay.ErrHistory)
		})
	}
	_, err := replay.File(context.Background(), filepath.Join(t.TempDir(), "missing.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A history of a run that is still going on fits too: it may be exported at any time.
func TestUnfinishedHistory(t *testing.T) {
	t.Parallel()
	h := history(t, "granted")
	for i, e := range h.GetEvents() {
		if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == "tarry.resolved" {
			h.Events = h.GetEvents()[:i]
			break
		}
	}
	_, err := replay.History(t.Context(), h)
	require.NoError(t, err)
}

// A run whose first message has not been looked at yet, since no worker is there, is no obstacle.
func TestRunThatHasNotBegun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"granted", "continued"} { // begun by a signal, and by the run before
		h := history(t, name)
		h.Events = h.GetEvents()[:2]
		r, err := replay.History(t.Context(), h)
		require.NoError(t, err)
		require.Zero(t, r.Activities)
	}
}
