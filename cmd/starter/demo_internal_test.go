package main

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"tarry/wire"
)

func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	const secret = "at_tarrycanary_ABCDEFGHIJKLMNOPQRSTUVWXYZ+/"
	needles := needlesOf([]string{secret})
	encode := func(prefix string) string { return base64.StdEncoding.EncodeToString([]byte(prefix + secret + "\"}")) }
	for name, text := range map[string]string{
		"as it stands":         `{"token":"` + secret + `"}`,
		"in a URL":             "?code=" + url.QueryEscape(secret),
		"first half":           "x" + secret[:len(secret)/2] + "\x00\x00",
		"second half":          "\x00" + secret[len(secret)/2:] + "x",
		"base64":               encode(""),
		"base64, one further":  encode("1"),
		"base64, two further":  encode("12"),
		"base64, in a payload": encode(`{"access_token":"`),
		"base64 of URLs":       base64.RawURLEncoding.EncodeToString([]byte("Bearer " + secret)),
	} {
		require.Positive(t, hits([]byte(text), needles), name)
	}
	require.Zero(t, hits([]byte("at_tarrycanary"+strings.Repeat("ABC", 100)), needlesOf([]string{"rt_" + secret[10:]})))
	require.Zero(t, hits([]byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("harmless text ", 50)))), needles))
}

func scheduled(id int64, activity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: activity}},
	}}
}

func completed(id, of int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: of},
	}}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	end := &historypb.HistoryEvent{EventId: 12, Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
		WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{},
	}}
	h := &historypb.History{Events: []*historypb.HistoryEvent{
		scheduled(1, wire.ActivityListTools), completed(2, 1),
		{EventId: 3},
		{EventId: 4},
		scheduled(5, wire.ActivityListTools),
		scheduled(6, wire.ActivityCallModel), completed(7, 6), scheduled(8, wire.ToolActivity("mcp", "a")), scheduled(9, wire.ToolActivity("mcp", "b")),
		scheduled(10, wire.ActivityCallModel), completed(11, 10), end,
	}}
	require.Equal(t, 2, waitEvents(h))
	got := turns(h)
	require.Len(t, got, 2)
	require.Equal(t, 4, got[0].events)
	require.Equal(t, 2, got[0].tools)
	require.Positive(t, got[0].bytes)
	require.True(t, got[0].whole)
	require.False(t, got[1].whole)
}

func TestLines(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"author":"user","content":{"parts":[{"text":"hello"}]}}`:                                           nil,
		`{"author":"a","content":{"parts":[{"text":"two\nlines \u001b[31m"},{"text":"hm","thought":true}]}}`: {"a: two lines [31m"},
		`{"author":"a","errorCode":"LIMIT","errorMessage":"no more"}`:                                        {"a: LIMIT no more"},
		`{"author":"a","content":{"parts":[{"functionResponse":{"name":"t","response":{"error":"no"}}}]}}`:   {"t fails: no"},
	} {
		var e event
		require.NoError(t, json.Unmarshal([]byte(body), &e))
		require.Equal(t, want, lines(&e), body)
	}
	require.Equal(t, strings.Repeat("ä", briefRunes-1)+"…", brief(strings.Repeat("ä", 500)))
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "02:03.045", elapsed(2*time.Minute+3*time.Second+45*time.Millisecond))
}
