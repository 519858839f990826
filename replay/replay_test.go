package replay_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"tarry/replay"
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
}

// What is noticed: another input (which the SDK's replayer ignores, pitfall T8), another order, another tool, a step that the
// code does not take. The error names the first difference.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of     string
		change func(t *testing.T, h *historypb.History)
		says   []string
	}{
		"an activity's input": {"granted", func(t *testing.T, h *historypb.History) {
			t.Helper()
			p := scheduled(t, h, "tarry.call_model")[1].GetInput().GetPayloads()[0]
			p.Data = bytes.Replace(p.GetData(), []byte(`"agent":"granted"`), []byte(`"agent":"another"`), 1)
		}, []string{"tarry.call_model", `"agent":"another"`, `"agent":"granted"`}},
		"the call that runs again": {"granted", func(t *testing.T, h *historypb.History) {
			t.Helper()
			p := scheduled(t, h, "tool/")[1].GetInput().GetPayloads()[0]
			p.Data = bytes.Replace(p.GetData(), []byte(`"answered"`), []byte(`"ignored"`), 1)
		}, []string{"tool/", `"ignored"`, `"answered"`}},
		"the order": {"parallel", func(t *testing.T, h *historypb.History) {
			t.Helper()
			calls := scheduled(t, h, "tool/")
			calls[0].ActivityType, calls[1].ActivityType = calls[1].GetActivityType(), calls[0].GetActivityType()
			calls[0].Input, calls[1].Input = calls[1].GetInput(), calls[0].GetInput()
		}, []string{"nondeterministic", "tool/"}},
		"another tool": {"granted", func(t *testing.T, h *historypb.History) {
			t.Helper()
			scheduled(t, h, "tool/")[0].ActivityType.Name = "tool/mcp/drop_tables"
		}, []string{"tool/mcp/drop_tables", "list_tickets"}},
		"an agent that the plan does not have": {"no_tools", func(_ *testing.T, h *historypb.History) {
			p := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0]
			p.Data = bytes.Replace(p.GetData(), []byte(`"name":"no_tools"`), []byte(`"name":"other"`), 1)
		}, []string{"tarry.call_model", `"agent":"no_tools"`, `"agent":"other"`}},
		"a step less": {"granted", func(_ *testing.T, h *historypb.History) {
			p := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0]
			p.Data = bytes.Replace(p.GetData(), []byte(`"toolsets"`), []byte(`"unread"`), 1)
		}, []string{"TMPRL1100"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, tc.of)
			tc.change(t, h)
			_, err := replay.History(t.Context(), h)
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
