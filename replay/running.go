package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"tarry/wire"
)

// Running replays the histories of all sessions that are open in the client's namespace: of one app, or of all if it is
// empty. It only reads. Temporal's visibility knows a session some seconds after it began; one that ends meanwhile is left
// out. There may be none. The summary is sorted by workflow id.
func (p Replayer) Running(ctx context.Context, c client.Client, namespace, app string) (Summary, error) {
	open, err := running(ctx, c, namespace, app)
	if err != nil {
		return nil, err
	}
	out := Summary{}
	for _, run := range open {
		h, err := Fetch(ctx, c, run.GetWorkflowId(), run.GetRunId())
		var gone *serviceerror.NotFound
		switch {
		case errors.As(err, &gone):
			continue
		case err != nil:
			return out, fmt.Errorf("%s: %w", run.GetWorkflowId(), err)
		}
		r, err := p.History(ctx, h)
		out = append(out, Checked{Name: run.GetWorkflowId(), Result: r, Err: err})
	}
	return out, nil
}

const pageSize = 500

func running(ctx context.Context, c client.Client, namespace, app string) (out []*commonpb.WorkflowExecution, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: namespace, PageSize: pageSize, Query: "WorkflowType = '" + wire.WorkflowSession + "' AND ExecutionStatus = 'Running'",
	}
	prefix := strings.TrimSuffix(wire.WorkflowID(app, "", ""), "/") // tarry/APP/
	for {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list open runs: %w", err)
		}
		for _, e := range page.GetExecutions() {
			if app == "" || strings.HasPrefix(e.GetExecution().GetWorkflowId(), prefix) {
				out = append(out, e.GetExecution())
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			break
		}
	}
	slices.SortFunc(out, func(a, b *commonpb.WorkflowExecution) int {
		return strings.Compare(a.GetWorkflowId(), b.GetWorkflowId())
	})
	return out, nil
}

// Fetch reads the history of a run from Temporal; an empty run id means the newest run of the workflow.
func Fetch(ctx context.Context, c client.Client, workflowID, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}
