package engine

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// History returns the history of the newest run of a workflow as JSON, in the form that the SDK's replayer, the Temporal
// CLI and package replay read.
func (e *Engine) History(ctx context.Context, workflowID string) ([]byte, error) {
	var h historypb.History
	events := e.Client.GetWorkflowHistory(ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if gone(err) {
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
