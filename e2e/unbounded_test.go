package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"tarry/replay"
	"tarry/wire"
)

// T2: one message that leads to a thousand tool calls, with runs that end after 200 events: the session has them all once, in the
// order of the model's answers, and says what it says in one run.
func TestThousandCallsInManyRuns(t *testing.T) {
	t.Parallel()
	const turns, each = 50, 20
	free := newFreeServer(t)
	o := single(strings.Repeat(call(slices.Repeat([]string{"note {text: hello}"}, each)...), turns) + text("done"))
	o.agents["assistant/root_agent.yaml"] = strings.Replace(o.agents["assistant/root_agent.yaml"], "${var:MCP_URL}", free.url, 1)
	o.env = []string{"TARRY_CONTINUE_AFTER=200"}
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "done", s.Answer)
	require.Equal(t, turns+1, s.ModelCalls)
	require.Equal(t, turns*each, s.ToolCalls)
	require.EqualValues(t, turns*each, free.calls.Load())
	require.Len(t, responses(r.events(), "note"), turns*each)
	w.checkAnswers(r.events(), "a thousand calls")
	c, workflow := w.temporal(), w.workflowOf(r)
	d, err := c.DescribeWorkflow(t.Context(), workflow, "")
	require.NoError(t, err)
	w.closes(c, r, workflow, d.WorkflowExecution.RunID, "the last run")
	runs := w.chain(c, workflow)
	t.Logf("%d runs", runs)
	require.Greater(t, runs, 10)
	_, err = replay.Reader(t.Context(), bytes.NewReader(r.history()))
	require.NoError(t, err)
}

// T23: 2,000 signals while a run that waits is made to continue as new ten times: messages and answers that count, each of them
// several times, among others that nobody knows. Each message is answered once and in order, each call that was approved runs once.
func TestTwoThousandSignals(t *testing.T) {
	t.Parallel()
	const approvals, messages, signals, runs = 40, 40, 2000, 10
	free := newFreeServer(t)
	agent := scenario{name: "assistant", url: free.url, guarded: true}.agent(free.url)
	w := newWorld(t, options{
		open: true, agents: map[string]string{"assistant/root_agent.yaml": agent},
		script: "agents:\n  - agent: assistant\n    steps:\n" +
			indent(`- {when: {contains: "message"}, text: "{{user_text}} answered"}`+"\n"+call(slices.Repeat([]string{"note {text: hello}"}, approvals)...)+text("noted"), "      "),
	})
	c := w.temporal()
	r := w.api.startAs("user", "assistant", map[string]string{"task": "Go.", "mode": "chat"})
	var requests []string
	w.eventually("the calls do not wait", func() bool {
		requests = nil
		for _, one := range r.status().WaitingFor {
			requests = append(requests, one.Request)
		}
		return len(requests) == approvals && r.status().State == "waiting_confirmation"
	})
	for i := range messages {
		w.api.startAs("user", "assistant", map[string]string{"task": fmt.Sprintf("message %d", i), "mode": "chat", "session": r.id})
	}
	workflow := w.workflowOf(r)
	inbox := w.query(`SELECT id FROM inbox WHERE workflow_id = ? ORDER BY seq`, workflow)
	require.Len(t, inbox, messages+1)

	for run := range runs {
		granted := requests[:(run+1)*approvals/runs]
		for _, request := range granted[run*approvals/runs:] {
			require.Equal(t, http.StatusOK, w.api.call("POST", r.path("/confirmations/"+request), map[string]bool{"confirmed": true}, nil))
		}
		var group sync.WaitGroup
		errs := make([]error, signals/runs)
		for i := range errs {
			group.Go(func() {
				switch i % 4 {
				case 0:
					errs[i] = c.SignalWorkflow(t.Context(), workflow, "", wire.SignalMessage, wire.Message{Inbox: inbox[(i/4*7+run)%len(inbox)]})
				case 1:
					errs[i] = c.SignalWorkflow(t.Context(), workflow, "", wire.SignalResolved, wire.Resolved{Request: granted[(i/4*7+run)%len(granted)], Outcome: wire.OutcomeGranted})
				case 2:
					errs[i] = c.SignalWorkflow(t.Context(), workflow, "", wire.SignalMessage, wire.Message{Inbox: fmt.Sprintf("none-%d-%d", run, i)})
				default:
					errs[i] = c.SignalWorkflow(t.Context(), workflow, "", wire.SignalResolved, wire.Resolved{Request: fmt.Sprintf("none-%d-%d", run, i), Outcome: wire.OutcomeDenied})
				}
				if i == len(errs)/2 {
					errs[i] = c.SignalWorkflow(t.Context(), workflow, "", wire.SignalContinueAsNew, nil)
				}
			})
		}
		group.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		w.eventually("the run does not continue as new", func() bool { return w.chain(c, workflow) >= run+2 })
	}
	answered := func() (out []string) {
		for _, e := range r.events() {
			for _, p := range e.Content.Parts {
				if e.Author == "assistant" && strings.HasSuffix(p.Text, "answered") {
					out = append(out, strings.TrimSuffix(p.Text, " answered"))
				}
			}
		}
		return out
	}
	w.eventually("the messages are not answered", func() bool { return len(answered()) >= messages && r.status().State == "idle" })
	var want []string
	for i := range messages {
		want = append(want, fmt.Sprintf("message %d", i))
	}
	require.Equal(t, want, answered())
	require.EqualValues(t, approvals, free.calls.Load())
	require.Len(t, w.modelCalls(), messages+2)
	w.checkAnswers(r.events(), "two thousand signals")
	handled := 0
	for run := ""; ; {
		first := true
		events := c.GetWorkflowHistory(t.Context(), workflow, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			if first {
				run, first = e.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), false
			}
			if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED {
				handled++
			}
		}
		if run == "" {
			break
		}
	}
	t.Logf("%d signals, %d runs", handled, w.chain(c, workflow))
	require.Greater(t, handled, signals)
	require.True(t, json.Valid(r.history()))
}
