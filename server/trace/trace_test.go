package trace_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/trace"
	"tarry/session"
)

const session1 = "s-1"

// story is a log that is written down event by event, a second apart.
type story struct {
	events []*session.Record
	at     time.Time
}

func newStory() *story { return &story{at: time.Unix(1_800_000_000, 0)} }

// adds writes down an event after the one before it.
func (s *story) adds(kind session.Kind, invocation, author, id string, parts ...*genai.Part) *session.Record {
	s.at = s.at.Add(time.Second)
	r := &session.Record{Kind: kind, Seq: int64(len(s.events) + 1), Event: session.Event{
		ID: id, InvocationID: invocation, Author: author, Timestamp: float64(s.at.UnixMilli()) / 1000, Content: &genai.Content{Role: "user", Parts: parts},
	}}
	if n := len(s.events); n > 0 {
		r.Parents = []string{s.events[n-1].ID}
	}
	s.events = append(s.events, r)
	return r
}

func (s *story) source(requests ...auth.Request) trace.Source {
	return trace.Source{Session: session1, Events: s.events, Requests: requests, Now: s.at.Add(time.Hour)}
}

func calls(id, name string) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: map[string]any{"page": "one"}}}
}

func answers(id, name string) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: map[string]any{"result": "two"}}}
}

// login is a run whose tool needs a login: five events, of which the last two are there when it was given.
func login(t *testing.T, answered bool) (*story, auth.Request) {
	t.Helper()
	s := newStory()
	s.adds(session.KindUser, "i", agent.UserAuthor, "e1", genai.NewPartFromText("Go."))
	s.adds(session.KindModel, "i", "planner", "e2", calls("c1", "read"))
	asked := s.adds(session.KindRequest, "i", "planner", "e3", calls("q1", agent.RequestCredential))
	asked.LongRunningToolIDs = []string{"q1"}
	q := auth.Request{ID: "q1", Session: session1, Invocation: "i", Agent: "planner", Call: "c1", Need: auth.Need{Type: "oauth2"}, Status: auth.StatusPending, Created: s.at}
	require.True(t, q.Need.Login())
	if answered {
		q.Status, q.Ended = auth.StatusGranted, s.at.Add(30*time.Minute)
		s.at = q.Ended
		s.adds(session.KindResponse, "i", "planner", "e4", answers("c1", "read"))
		s.adds(session.KindModel, "i", "planner", "e5", genai.NewPartFromText("Done."))
	}
	return s, q
}

func named(spans []trace.Span) map[string]trace.Span {
	out := map[string]trace.Span{}
	for _, s := range spans {
		out[s.Name] = s
	}
	return out
}

func TestSpansOfALogin(t *testing.T) {
	t.Parallel()
	s, q := login(t, true)
	spans := s.source(q).Spans("")
	require.Len(t, spans, 6, "the invocation, the turn, two answers, the call and the wait")
	by := named(spans)
	root, turn, call, wait := by["invocation"], by["invoke_agent planner"], by["execute_tool read"], by["wait_for_person login"]
	require.Empty(t, root.Parent)
	require.Equal(t, root.SpanID, turn.Parent)
	require.Equal(t, turn.SpanID, call.Parent)
	require.Equal(t, call.SpanID, wait.Parent)
	require.Equal(t, 30*time.Minute, time.Duration(wait.End-wait.Start))
	require.Equal(t, "granted", wait.Attributes["tarry.wait.status"])
	require.NotContains(t, root.Attributes, "tarry.open")
	require.JSONEq(t, `{"page":"one"}`, call.Attributes["gcp.vertex.agent.tool_call_args"].(string))
	require.JSONEq(t, `{"result":"two"}`, call.Attributes["gcp.vertex.agent.tool_response"].(string))
	nested(t, spans)

	again := s.source(q).Spans("i")
	require.Equal(t, spans, again, "the same spans have the same ids")
	require.Empty(t, s.source(q).Spans("j"))
	other := q
	other.Session = "s-2"
	require.NotContains(t, named(s.source(other).Spans("")), "wait_for_person login", "a request of another session")
}

// What has not ended ends now, and says so up to the invocation.
func TestSpansOfAWait(t *testing.T) {
	t.Parallel()
	s, q := login(t, false)
	from := s.source(q)
	spans := from.Spans("")
	by := named(spans)
	for _, name := range []string{"invocation", "execute_tool read", "wait_for_person login"} {
		require.Equal(t, true, by[name].Attributes["tarry.open"], name)
		require.Equal(t, from.Now.UnixNano(), by[name].End, name)
	}
	nested(t, spans)
}

// nested checks that all spans lie within their parents, in one trace, and are sorted.
func nested(t *testing.T, spans []trace.Span) {
	t.Helper()
	by := map[string]trace.Span{}
	for _, s := range spans {
		require.NotContains(t, by, s.SpanID, s.Name)
		by[s.SpanID] = s
	}
	for i, s := range spans {
		require.LessOrEqual(t, s.Start, s.End, s.Name)
		require.Equal(t, spans[0].TraceID, s.TraceID)
		if i > 0 {
			require.LessOrEqual(t, spans[i-1].Start, s.Start)
		}
		if s.Parent != "" {
			require.Contains(t, by, s.Parent, s.Name)
			require.LessOrEqual(t, by[s.Parent].Start, s.Start, s.Name)
			require.GreaterOrEqual(t, by[s.Parent].End, s.End, s.Name)
		}
	}
}

func TestEventOfATrace(t *testing.T) {
	t.Parallel()
	s, q := login(t, true)
	for event, want := range map[string]string{"e2": "call_llm", "e3": "wait_for_person login", "e4": "execute_tool read", "e5": "call_llm", "e1": "", "none": ""} {
		span, found := s.source(q).Event(event)
		require.Equal(t, want != "", found, event)
		require.Equal(t, want, span.Name, event)
		if found {
			flat := span.Flat()
			require.Equal(t, event, flat["gcp.vertex.agent.event_id"])
			require.Equal(t, span.SpanID, flat["span_id"])
			require.NotContains(t, span.Attributes, "span_id", "the span itself is not changed")
		}
	}
	last, _ := s.source(q).Event("e5")
	var asked struct{ Contents []*genai.Content }
	require.NoError(t, json.Unmarshal([]byte(last.Attributes["gcp.vertex.agent.llm_request"].(string)), &asked))
	require.NotEmpty(t, asked.Contents)
	require.NotContains(t, last.Attributes["gcp.vertex.agent.llm_request"], "adk_request_credential", "models do not see who was asked")
}

// A trace is bounded: the newest invocations are whole as far as there is room, older ones are left out, and so are texts that
// are too long.
func TestBoundsOfATrace(t *testing.T) {
	t.Parallel()
	s := newStory()
	long := strings.Repeat("ü", 10_000)
	for i := range 40 {
		invocation := fmt.Sprint("i", i)
		s.adds(session.KindUser, invocation, agent.UserAuthor, invocation+"-u", genai.NewPartFromText("Go."))
		for k := range 100 {
			s.adds(session.KindModel, invocation, "planner", fmt.Sprint(invocation, "-m", k), genai.NewPartFromText(long))
		}
	}
	spans := s.source().Spans("")
	require.LessOrEqual(t, len(spans), trace.MaxSpans)
	require.Greater(t, len(spans), trace.MaxSpans-200)
	seen, texts := map[string]int{}, 0
	for _, span := range spans {
		seen[span.Attributes["gcp.vertex.agent.invocation_id"].(string)]++
		for _, v := range span.Attributes {
			if text, ok := v.(string); ok {
				require.Less(t, len(text), 5000)
				texts += len(text)
			}
		}
	}
	require.Equal(t, 102, seen["i39"], "the newest is whole")
	require.NotContains(t, seen, "i0")
	require.Less(t, texts, 6<<20)

	one, found := s.source().Event("i39-m99")
	require.True(t, found)
	require.Contains(t, one.Attributes["gcp.vertex.agent.llm_response"], long, "one event is told whole")

	for i := range 6000 {
		s.adds(session.KindModel, "endless", "planner", fmt.Sprint("endless", i), genai.NewPartFromText("x"))
	}
	spans = s.source().Spans("")
	require.Len(t, spans, 5000)
	for _, span := range spans {
		require.Equal(t, "endless", span.Attributes["gcp.vertex.agent.invocation_id"])
	}
	require.Len(t, s.source().Spans("i39"), 102, "asked for, an old one is there")
}
