package replay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"tarry/replay"
)

// namespace is a Temporal namespace with open runs, listed one a page.
type namespace struct {
	client.Client
	ids     []string
	runs    map[string]*historypb.History
	err     error
	queries []string
}

func (n *namespace) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	n.queries = append(n.queries, r.GetNamespace()+": "+r.GetQuery())
	i := len(r.GetNextPageToken())
	if n.err != nil || i >= len(n.ids) {
		return &workflowservice.ListWorkflowExecutionsResponse{}, n.err
	}
	return &workflowservice.ListWorkflowExecutionsResponse{
		Executions:    []*workflowpb.WorkflowExecutionInfo{{Execution: &commonpb.WorkflowExecution{WorkflowId: n.ids[i], RunId: "run"}}},
		NextPageToken: make([]byte, i+1),
	}, nil
}

func (n *namespace) GetWorkflowHistory(_ context.Context, id, run string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	if n.runs[id] == nil || run != "run" {
		return &events{err: serviceerror.NewNotFound("workflow not found")}
	}
	return &events{left: n.runs[id].GetEvents()}
}

type events struct {
	left []*historypb.HistoryEvent
	err  error
}

func (e *events) HasNext() bool { return e.err != nil || len(e.left) > 0 }

func (e *events) Next() (*historypb.HistoryEvent, error) {
	if e.err != nil {
		return nil, e.err
	}
	next := e.left[0]
	e.left = e.left[1:]
	return next, nil
}

// All open sessions are replayed, page after page, of one app or of all; one that ends meanwhile is left out.
func TestRunning(t *testing.T) {
	t.Parallel()
	changed := history(t, "granted")
	scheduled(t, changed, "tool/")[0].ActivityType.Name = "tool/mcp/other"
	n := &namespace{
		ids: []string{"tarry/b/user/2", "tarry/a/user/1", "tarry/ab/user/3", "tarry/a/user/gone"},
		runs: map[string]*historypb.History{
			"tarry/b/user/2": changed, "tarry/a/user/1": history(t, "denied"), "tarry/ab/user/3": history(t, "loop"),
		},
	}
	all, err := replay.Replayer{}.Running(t.Context(), n, "here", "")
	require.NoError(t, err)
	require.Equal(t, "2 of 3 fit, 1 differ", all.String())
	require.Equal(t, "tarry/a/user/1", all[0].Name)
	require.Equal(t, "tarry/b/user/2", all[2].Name)
	require.True(t, all[2].Differs())
	require.Equal(t, "here: WorkflowType = 'tarry.session' AND ExecutionStatus = 'Running'", n.queries[0])

	all, err = replay.Replayer{}.Running(t.Context(), n, "here", "a")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, all.Err())

	n.err = errors.New("down")
	_, err = replay.Replayer{}.Running(t.Context(), n, "here", "")
	require.ErrorIs(t, err, n.err)
}
