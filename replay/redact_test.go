package replay_test

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"tarry/replay"
)

// fixtures are the histories of package workflows, those of custom agents apart: their functions are not here.
func fixtures(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../workflows/testdata/histories/*.json")
	require.NoError(t, err)
	for _, file := range files {
		name := filepath.Base(file[:len(file)-len(".json")])
		if !strings.Contains(string(start(history(t, name)).GetPayloads()[0].GetData()), `"custom":`) {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

// text is a history's JSON with its payloads decoded.
func text(t *testing.T, h *historypb.History) string {
	t.Helper()
	body, err := protojson.Marshal(h)
	require.NoError(t, err)
	return regexp.MustCompile(`"data": ?"[^"]*"`).ReplaceAllStringFunc(string(body), func(field string) string {
		var encoded struct{ Data string }
		require.NoError(t, json.Unmarshal([]byte("{"+field+"}"), &encoded))
		plain, err := base64.StdEncoding.DecodeString(encoded.Data)
		require.NoError(t, err)
		return string(plain)
	})
}

// Every recorded history replays once it is redacted, and nothing that identifies a run, its person or a host is left.
func TestRedact(t *testing.T) {
	t.Parallel()
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	telling := regexp.MustCompile(uuid + `|adk-[a-z2-7]{16}|[0-9a-f]{8}-mcp|/[a-z2-7]{16}/|\d+@[^"]*|host:|"identity": ?"[^"]+"|20[0-9]{2}-[0-9]{2}-[0-9]{2}T`)
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, name)
			before := proto.Clone(h)
			out, err := replay.Redact(h)
			require.NoError(t, err)
			require.True(t, proto.Equal(before, h), "what is given stays as it is")
			raw, redacted := text(t, h), text(t, out[0])
			found := telling.FindAllString(raw, -1)
			require.NotEmpty(t, found)
			for _, id := range found {
				require.NotContains(t, redacted, id)
			}
			want, err := replay.History(t.Context(), h)
			require.NoError(t, err)
			got, err := replay.History(t.Context(), out[0])
			require.NoError(t, err)
			require.Equal(t, want, got)
			again, err := replay.Redact(h)
			require.NoError(t, err)
			require.True(t, proto.Equal(out[0], again[0]), "the same each time")
		})
	}
}

// marked adds what could tell of a person to a history, wherever the SDK and Temporal have a place for it.
func marked(t *testing.T) *historypb.History {
	t.Helper()
	const mark = "alice@example.com"
	h := history(t, "denied")
	text := func(s string) *commonpb.Payload {
		return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "key": []byte(mark)}, Data: []byte(s)}
	}
	a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	a.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{mark: text(`"x"`)}}
	a.Header = &commonpb.Header{Fields: map[string]*commonpb.Payload{"who": text(`"` + mark + `"`)}}
	a.SearchAttributes.IndexedFields["Customer"] = text(`"` + mark + `"`)
	a.ContinuedFailure = &failurepb.Failure{
		Message: mark, Source: mark, StackTrace: mark, EncodedAttributes: text(`"` + mark + `"`), Cause: &failurepb.Failure{Message: mark},
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
			Type: "tarry.final", Details: &commonpb.Payloads{Payloads: []*commonpb.Payload{text(`"` + mark + `"`)}},
		}},
	}
	for _, e := range h.GetEvents() {
		e.UserMetadata = &sdkpb.UserMetadata{Summary: text(`"` + mark + `"`)}
		if m := e.GetMarkerRecordedEventAttributes(); e.GetEventId() == 38 {
			edit(t, m.GetDetails()["result"], `}`, `,"value":{"name":["`+mark+`",7,"negative"],"`+mark+`":{"alice smith":true,"plan_2":[{"+49 alice":0}]}}}`)
		}
	}
	edit(t, a.GetInput(), `"kind":"LlmAgent"`, `"kind":"LlmAgent","on_deadline":"fail"`)
	return h
}

// Nothing that could tell of a person is kept, wherever it stands; what the code decides by is.
func TestRedactEverywhere(t *testing.T) {
	t.Parallel()
	h := marked(t)
	out, err := replay.Redact(h)
	require.NoError(t, err)
	redacted := text(t, out[0])
	require.NotContains(t, redacted, "alice")
	require.NotContains(t, redacted, "negative")
	require.Contains(t, redacted, `"on_deadline":"fail"`)
	require.Contains(t, redacted, `"plan_2"`, "the name of a field")
	require.Contains(t, redacted, "tarry.final")
	require.Contains(t, redacted, `,7,`)
	_, err = replay.History(t.Context(), out[0])
	require.NoError(t, err)

	out, err = replay.Redaction{KeepValues: true}.Redact(h)
	require.NoError(t, err)
	require.Contains(t, text(t, out[0]), `"value":{"name":["alice@example.com",7,"negative"],"alice@example.com":{"alice smith":true,`)
}

// Runs of a chain are redacted together, so that one still names the other, and their order in time is kept.
func TestRedactChain(t *testing.T) {
	t.Parallel()
	out, err := replay.Redact(history(t, "continued_run1"), history(t, "continued"))
	require.NoError(t, err)
	first, last := out[0].GetEvents(), out[1].GetEvents()
	require.Equal(t, first[len(first)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(),
		last[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId())
	require.Equal(t, first[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId(),
		last[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId())
	require.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), first[0].GetEventTime().AsTime())
	require.True(t, first[len(first)-1].GetEventTime().AsTime().After(first[0].GetEventTime().AsTime()))
	require.False(t, last[0].GetEventTime().AsTime().Before(first[len(first)-1].GetEventTime().AsTime()))
}

func TestRedactRefuses(t *testing.T) {
	t.Parallel()
	_, err := replay.Redact(&historypb.History{})
	require.ErrorIs(t, err, replay.ErrHistory)
	h := history(t, "denied")
	scheduled(t, h, "tarry.take")[0].GetInput().GetPayloads()[0].Metadata["encoding"] = []byte("binary/encrypted")
	_, err = replay.Redact(h)
	require.ErrorContains(t, err, `redact event 6: a payload is encoded as "binary/encrypted"`)
	h = history(t, "denied")
	scheduled(t, h, "tarry.take")[0].GetInput().GetPayloads()[0].Data = []byte(`{"heads":`)
	_, err = replay.Redact(h)
	require.ErrorContains(t, err, "redact event 6: payload is not JSON")
	out, err := replay.Redact()
	require.NoError(t, err)
	require.Empty(t, out)
}
