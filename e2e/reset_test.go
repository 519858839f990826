package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"tarry/replay"
)

// tasks lists the workflow tasks of a run that it can be reset to.
func (w *world) tasks(c client.Client, workflow, run string) (out []int64) {
	w.t.Helper()
	events := c.GetWorkflowHistory(w.t.Context(), workflow, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(w.t, err)
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			out = append(out, e.GetEventId())
		}
	}
	return out
}

// reset resets a run and returns the one that goes on in its place.
func (w *world) reset(c client.Client, workflow, run string, task int64) string {
	w.t.Helper()
	out, err := c.ResetWorkflowExecution(w.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: run},
		Reason: "a test", WorkflowTaskFinishEventId: task, RequestId: uuid.NewString(),
	})
	require.NoError(w.t, err, "task %d", task)
	return out.GetRunId()
}

// closes waits until a run has ended, logging in as often as the session asks.
func (w *world) closes(c client.Client, r runHandle, workflow, run, what string) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	tried := map[string]bool{}
	w.eventually(what+": the run does not end", func() bool {
		d, err := c.DescribeWorkflow(ctx, workflow, run)
		require.NoError(w.t, err)
		if d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			require.Equal(w.t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, d.Status, what)
			return true
		}
		if s := r.status(); strings.HasPrefix(s.State, "waiting_") && len(s.WaitingFor) > 0 && !tried[s.WaitingFor[0].Request] {
			tried[s.WaitingFor[0].Request] = true
			w.login(s.WaitingFor[0].Link)
		}
		return false
	})
}

// told is what a session says, without ids and without the questions to people.
func told(events []event) (out []string) {
	for _, e := range events {
		line := e.Author + " " + e.ErrorCode
		for _, p := range e.Content.Parts {
			switch {
			case p.FunctionCall != nil && strings.HasPrefix(p.FunctionCall.Name, "adk_request_"):
				line = ""
			case p.FunctionCall != nil:
				line += " calls " + p.FunctionCall.Name
			case p.FunctionResponse != nil:
				line += " result of " + p.FunctionResponse.Name
			default:
				line += " says " + p.Text
			}
		}
		if line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out) // the results of parallel calls come as they come
	return out
}

// A run with parallel calls, a login and a tool that may not run twice is reset to each of its workflow tasks, from first to
// last: each time it goes on to a session that says the same, with nothing in it of the runs before, and no call has run twice.
func TestResetToEveryTask(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	o := single(call("note {text: hello}", "list_tickets") + call("add_comment {ticket: REL-101, text: looked at}", "whoami") + text("All done."))
	o.agents["assistant/root_agent.yaml"] += "  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " + free.url + "\n"
	w := newWorld(t, o)
	c := w.temporal()
	r := w.api.start("assistant", "Go.")
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	workflow := w.workflowOf(r)
	d, err := c.DescribeWorkflow(t.Context(), workflow, "")
	require.NoError(t, err)
	first := d.WorkflowExecution.RunID
	w.closes(c, r, workflow, first, "the first run")
	want := told(r.events())

	tasks := w.tasks(c, workflow, first)
	t.Logf("%d workflow tasks", len(tasks))
	for _, task := range tasks {
		what := fmt.Sprintf("reset to task %d", task)
		run := w.reset(c, workflow, first, task)
		w.closes(c, r, workflow, run, what)
		s := r.status()
		require.Equal(t, "done", s.InvocationStatus, what)
		require.Equal(t, "done", s.State, what)
		require.Equal(t, "All done.", s.Answer, what)
		events := r.events()
		require.Equal(t, want, told(events), what)
		w.checkAnswers(events, what)
		w.checkKeys("user", events, what)
		_, err := replay.Reader(t.Context(), bytes.NewReader(r.history()))
		require.NoError(t, err, what)
	}
}

// A run that waits is reset to each task before its wait. The person answers what is asked then: the same link where the question
// stands, another where it was taken back.
func TestResetWhileItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("Four tickets.")))
	c := w.temporal()
	tasks := 0
	for i := 0; i == 0 || i < tasks; i++ {
		r := w.api.startAs(fmt.Sprintf("user%d", i), "assistant", map[string]string{"task": "Go."})
		link := w.waiting(r)
		workflow := w.workflowOf(r)
		d, err := c.DescribeWorkflow(t.Context(), workflow, "")
		require.NoError(t, err)
		all := w.tasks(c, workflow, d.WorkflowExecution.RunID)
		tasks = len(all)
		what := fmt.Sprintf("reset to task %d of %d", i, tasks)
		if i >= tasks {
			break
		}
		run := w.reset(c, workflow, d.WorkflowExecution.RunID, all[i])
		w.eventually(what+": the run does not wait", func() bool {
			s := r.status()
			if s.State != "waiting_credential" || len(s.WaitingFor) == 0 {
				return false
			}
			link = s.WaitingFor[0].Link
			status, err := c.QueryWorkflow(t.Context(), workflow, run, "tarry.status")
			if err != nil {
				return false
			}
			var st struct{ Requests []string }
			require.NoError(t, status.Get(&st))
			return slices.Contains(st.Requests, s.WaitingFor[0].Request)
		})
		require.NotEmpty(t, link)
		w.closes(c, r, workflow, run, what)
		s := r.status()
		require.Equal(t, "done", s.InvocationStatus, what)
		require.Equal(t, "Four tickets.", s.Answer, what)
		w.checkAnswers(r.events(), what)
		require.Len(t, responses(r.events(), "list_tickets"), 1, what)
	}
}

// A chat that is reset to before its second message takes that message again, and the first stays.
func TestResetBeforeAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(text("one")+text("two")))
	c := w.temporal()
	r := w.api.startAs("user", "assistant", map[string]string{"task": "First.", "mode": "chat"})
	w.idle(r, "one")
	workflow := w.workflowOf(r)
	d, err := c.DescribeWorkflow(t.Context(), workflow, "")
	require.NoError(t, err)
	before := w.tasks(c, workflow, d.WorkflowExecution.RunID)
	w.api.startAs("user", "assistant", map[string]string{"task": "Second.", "mode": "chat", "session": r.id})
	w.eventually("the second message is not answered", func() bool { return len(r.events()) == 4 && r.status().State == "idle" })
	want := told(r.events())
	ids := func() (out []string) {
		for _, e := range r.events() {
			out = append(out, e.ID)
		}
		return out
	}
	old := ids()
	for _, task := range []int64{before[len(before)-1], before[0]} {
		run := w.reset(c, workflow, d.WorkflowExecution.RunID, task)
		w.eventually(fmt.Sprintf("reset to task %d: the messages are not answered again", task), func() bool {
			status, err := c.QueryWorkflow(t.Context(), workflow, run, "tarry.status")
			return err == nil && status != nil && !slices.Equal(ids(), old) && len(ids()) == 4 && r.status().State == "idle"
		})
		require.Equal(t, want, told(r.events()))
		old = ids()
	}
}
