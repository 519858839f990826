package engine

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/encoding/protojson"
)

// History returns the history of a run as JSON, in the form that the SDK's replayer, the Temporal CLI and package replay
// read. An empty run id means the newest run of the workflow.
func (e *Engine) History(ctx context.Context, workflowID, runID string) ([]byte, error) {
	var h historypb.History
	events := e.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		var invalid *serviceerror.InvalidArgument
		if gone(err) || runID != "" && errors.As(err, &invalid) { // Temporal calls a run id invalid that is no UUID
			return nil, fmt.Errorf("read history: %w", ErrGone)
		}
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		h.Events = append(h.Events, event)
	}
	body, err := protojson.Marshal(&h)
	if err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	return body, nil
}
