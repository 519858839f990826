package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"tarry/agent"
	"tarry/auth"
	"tarry/engine"
	"tarry/wire"
)

// fakeRuns notes what is started and signalled; err is what every call answers.
type fakeRuns struct {
	fakeTemporal
	err     error
	status  enums.WorkflowExecutionStatus
	options client.StartWorkflowOptions
	input   wire.SessionInput
	signals []any
	runs    []string
}

func (f *fakeRuns) WorkflowService() workflowservice.WorkflowServiceClient {
	return &fakeService{fake: &f.fakeTemporal}
}

func (f *fakeRuns) SignalWithStartWorkflow(_ context.Context, id, signal string, payload any, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	f.signals = append(f.signals, id, signal, payload)
	f.options = o
	f.input, _ = args[0].(wire.SessionInput)
	return nil, f.err
}

func (f *fakeRuns) SignalWorkflow(_ context.Context, id, run, signal string, payload any) error {
	f.signals = append(f.signals, id, signal, payload)
	f.runs = append(f.runs, run)
	return f.err
}

func (f *fakeRuns) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	if f.err != nil {
		return nil, f.err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(wire.Status{State: wire.StateIdle})
	return client.NewValue(payloads), err
}

func (f *fakeRuns) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	if f.err != nil {
		return nil, f.err
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = f.status
	return d, nil
}

func newEngine(t *testing.T, f *fakeRuns, dev bool) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Client: f, UserKey: auth.NewSecret("0123456789abcdef0123456789abcdef"), Dev: dev})
	require.NoError(t, err)
	return e
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := engine.New(engine.Config{UserKey: auth.NewSecret(strings.Repeat("k", 32))})
	require.Error(t, err)
	_, err = engine.New(engine.Config{Client: &fakeRuns{}, UserKey: auth.NewSecret(strings.Repeat("k", 31))})
	require.Error(t, err)
}

// Workflow ids are the only place outside the database where a user could show, and they are found again by them for ever.
func TestWorkflowID(t *testing.T) {
	t.Parallel()
	e := newEngine(t, &fakeRuns{}, false)
	id := e.WorkflowID(agent.Owner{App: "app", User: "ann@example.com"}, "s1")
	require.Equal(t, id, newEngine(t, &fakeRuns{}, true).WorkflowID(agent.Owner{App: "app", User: "ann@example.com"}, "s1"))
	require.Regexp(t, `^tarry/app/[a-z2-7]{16}/s1$`, id)
	require.NotContains(t, id, "ann")
	require.NotEqual(t, id, e.WorkflowID(agent.Owner{App: "app", User: "bob"}, "s1"))
	require.NotEqual(t, e.WorkflowID(agent.Owner{App: "a", User: "bc"}, "s"), e.WorkflowID(agent.Owner{App: "ab", User: "c"}, "s"))
}

// A message starts the workflow or joins the one that runs (pitfall T22: without a timeout of the execution), and its start
// input holds the plan and no content.
func TestMessage(t *testing.T) {
	t.Parallel()
	f := &fakeRuns{}
	plan := agent.Plan{App: "app", Root: agent.Node{Name: "root", Kind: agent.KindLLM}}
	require.NoError(t, newEngine(t, f, true).Message(t.Context(), "id", "in-1", "hash", plan, wire.ModeChat))
	require.Equal(t, []any{"id", wire.SignalMessage, wire.Message{Inbox: "in-1"}}, f.signals)
	require.Equal(t, wire.TaskQueue, f.options.TaskQueue)
	require.Equal(t, enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, f.options.WorkflowIDConflictPolicy)
	require.Equal(t, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, f.options.WorkflowIDReusePolicy)
	require.Zero(t, f.options.WorkflowExecutionTimeout)
	require.Zero(t, f.options.WorkflowRunTimeout)
	require.NotZero(t, f.options.WorkflowTaskTimeout, "in development")
	require.NotZero(t, f.input.Timing.Heartbeat)
	require.Equal(t, "hash", f.input.Definition)
	require.Equal(t, plan, f.input.Plan)
	require.False(t, f.input.SearchAttributes)
	require.Nil(t, f.input.Carry)

	f.err = serviceerror.NewUnavailable("down")
	require.ErrorIs(t, newEngine(t, f, false).Message(t.Context(), "id", "in-1", "hash", plan, wire.ModeJob), f.err)
}

// Signals follow continue-as-new: they name no run. A workflow that is not there is told apart from a failure.
func TestSignals(t *testing.T) {
	t.Parallel()
	f := &fakeRuns{}
	e := newEngine(t, f, false)
	require.NoError(t, e.Cancel(t.Context(), "id", "inv"))
	require.Equal(t, []any{"id", wire.SignalCancel, wire.Cancel{Invocation: "inv"}}, f.signals)
	require.NoError(t, e.CancelCall(t.Context(), "id", "adk-1"))
	// A worker of before takes the call's id for a stale invocation, and cancels nothing.
	require.Equal(t, []any{"id", wire.SignalCancel, wire.Cancel{Invocation: "adk-1", Call: "adk-1"}}, f.signals[3:])
	require.Equal(t, []string{"", ""}, f.runs)

	f.err = serviceerror.NewNotFound("workflow execution already completed")
	require.ErrorIs(t, e.Signal(t.Context(), "id", wire.SignalResolved, wire.Resolved{}), engine.ErrGone)
	f.err = errors.New("down")
	err := e.Signal(t.Context(), "id", wire.SignalResolved, wire.Resolved{})
	require.ErrorIs(t, err, f.err)
	require.NotErrorIs(t, err, engine.ErrGone)
}

func TestStatusAndRunning(t *testing.T) {
	t.Parallel()
	f := &fakeRuns{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
	e := newEngine(t, f, false)
	s, err := e.Status(t.Context(), "id")
	require.NoError(t, err)
	require.Equal(t, wire.StateIdle, s.State)
	running, err := e.Running(t.Context(), "id")
	require.NoError(t, err)
	require.True(t, running)

	f.status = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	running, err = e.Running(t.Context(), "id")
	require.NoError(t, err)
	require.False(t, running)

	f.err = serviceerror.NewNotFound("")
	_, err = e.Status(t.Context(), "id")
	require.ErrorIs(t, err, engine.ErrGone)
	running, err = e.Running(t.Context(), "id")
	require.NoError(t, err)
	require.False(t, running)
}

// histories has one run, "r1", of workflow "id".
type histories struct {
	fakeRuns
	asked string
}

func (h *histories) GetWorkflowHistory(_ context.Context, id, run string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	h.asked = id + " " + run
	if run == "no-uuid" {
		h.err = serviceerror.NewInvalidArgument("invalid run id")
	}
	return h
}

func (h *histories) HasNext() bool { return h.err != nil || h.asked != "" }

func (h *histories) Next() (*historypb.HistoryEvent, error) {
	h.asked = ""
	return &historypb.HistoryEvent{EventId: 1}, h.err
}

// A history is that of the run which is named, else of the latest. What Temporal does not know, or takes for no id, is gone.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  string
		err  error
		want error
	}{
		"latest": {}, "a run": {run: "r1"}, "no id": {run: "no-uuid", want: engine.ErrGone},
		"gone": {err: serviceerror.NewNotFound("workflow not found"), want: engine.ErrGone},
		"down": {err: serviceerror.NewUnavailable("down"), want: serviceerror.NewUnavailable("down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &histories{fakeRuns: fakeRuns{err: c.err}}
			e, err := engine.New(engine.Config{Client: h, UserKey: auth.NewSecret(strings.Repeat("k", 32))})
			require.NoError(t, err)
			body, err := e.History(t.Context(), "id", c.run)
			if c.want == nil {
				require.NoError(t, err)
				require.JSONEq(t, `{"events":[{"eventId":"1"}]}`, string(body))
				return
			}
			require.ErrorContains(t, err, c.want.Error())
			require.Equal(t, errors.Is(c.want, engine.ErrGone), errors.Is(err, engine.ErrGone))
		})
	}
}
