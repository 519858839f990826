package adk_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/wire"
)

// spans reads a trace, and checks what ADK's web UI checks of every span.
func (b *bundle) spans(path string) (out []map[string]any) {
	b.t.Helper()
	status, body := b.do(http.MethodGet, path, nil)
	require.Equal(b.t, http.StatusOK, status, body)
	require.NoError(b.t, json.Unmarshal([]byte(body), &out))
	require.NotContains(b.t, body, "null")
	for _, s := range out {
		for _, key := range []string{"name", "trace_id", "span_id"} {
			require.NotEmpty(b.t, s[key])
		}
		require.IsType(b.t, 0.0, s["start_time"])
		require.IsType(b.t, 0.0, s["end_time"])
		require.GreaterOrEqual(b.t, s["end_time"], s["start_time"])
		attributes := s["attributes"].(map[string]any)
		switch attributes["gen_ai.operation.name"] {
		case "invoke_agent":
			require.IsType(b.t, "", attributes["gen_ai.conversation.id"])
		case "generate_content":
			require.IsType(b.t, "", attributes["gcp.vertex.agent.event_id"])
		}
		for key, value := range attributes {
			if key == "gen_ai.response.finish_reasons" {
				require.IsType(b.t, []any{}, value)
				continue
			}
			require.NotNil(b.t, value, key)
		}
		for _, key := range []string{"gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"} {
			if text, ok := attributes[key].(string); ok {
				require.True(b.t, json.Valid([]byte(text)), "%s: %s", key, text)
			}
		}
	}
	return out
}

func named(all []map[string]any, name string) map[string]any {
	for _, s := range all {
		if s["name"] == name {
			return s
		}
	}
	return nil
}

func attribute(span map[string]any, name string) any {
	return span["attributes"].(map[string]any)[name]
}

const traceOf = "/dev/apps/tickets/debug/trace/"

func TestSessionTrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions+"/s1", nil)
	require.Empty(t, b.spans(traceOf+"session/s1"))
	p := b.player("s1")
	p.Post("look", wire.ModeChat)
	user := p.Take()
	said := p.Say("let me see", "call-1", "call-2")
	found := p.Respond("call-1", "")
	p.Heads = []string{said.ID}
	p.Ask("call-2", "r1")

	all := b.spans(traceOf + "session/s1")
	wait := named(all, "wait_for_person login")
	require.NotNil(t, wait)
	require.Equal(t, true, attribute(wait, "tarry.open"))
	require.Equal(t, "pending", attribute(wait, "tarry.wait.status"))
	require.Equal(t, "r1", attribute(wait, "tarry.wait.request"))

	p.Grant("r1")
	late := p.Respond("call-2", "r1")
	p.Heads = []string{found.ID, late.ID}
	end := p.Say("there it is")
	p.Finish(wire.EndDone, false)
	p.Post("thanks", wire.ModeChat)
	p.Take()
	p.Say("any time")
	p.Finish(wire.EndDone, false)

	all = b.spans(traceOf + "session/s1")
	names := []any{}
	ids := map[any]map[string]any{}
	for _, s := range all {
		names = append(names, s["name"])
		ids[s["span_id"]] = s
	}
	require.Equal(t, []any{"invocation", "invoke_agent helper", "call_llm", "execute_tool search", "execute_tool search", "wait_for_person login", "call_llm", "invocation", "invoke_agent helper", "call_llm"}, names)
	require.Len(t, ids, len(all))
	root := all[0]
	require.NotContains(t, root, "parent_span_id")
	for _, s := range all[1:7] {
		parent := ids[s["parent_span_id"]]
		require.NotNil(t, parent, s["name"])
		require.LessOrEqual(t, parent["start_time"], s["start_time"])
		require.GreaterOrEqual(t, parent["end_time"], s["end_time"])
		require.Equal(t, root["trace_id"], s["trace_id"])
		require.Equal(t, user.InvocationID, attribute(s, "gcp.vertex.agent.invocation_id"))
	}
	require.NotEqual(t, root["trace_id"], all[7]["trace_id"], "an invocation is a trace")
	require.Equal(t, "execute_tool search", ids[all[5]["parent_span_id"]]["name"], "the wait is the call's")
	require.Equal(t, "call-2", attribute(ids[all[5]["parent_span_id"]], "gen_ai.tool.call.id"))
	require.Equal(t, "granted", attribute(all[5], "tarry.wait.status"))
	require.NotContains(t, all[5]["attributes"], "tarry.open")
	last := all[6]
	require.Equal(t, end.ID, attribute(last, "gcp.vertex.agent.event_id"))
	request := decode(t, attribute(last, "gcp.vertex.agent.llm_request").(string))
	require.Len(t, request["contents"], 2, "what was new to the model")
	require.Contains(t, attribute(last, "gcp.vertex.agent.llm_response"), "there it is")

	one := b.spans(traceOf + "session/s1?invocation=" + user.InvocationID)
	require.Len(t, one, 7)
	require.Equal(t, all, b.spans("/debug/trace/session/s1"))
	require.Equal(t, all, b.spans(traceOf+"session/s1"), "the same each time")
}

func TestEventTrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("look", wire.ModeChat)
	user := p.Take()
	said := p.Say("", "call-1")
	found := p.Respond("call-1", "")
	end := p.Say("there it is")
	p.Finish(wire.EndDone, false)
	for id, name := range map[string]string{said.ID: "call_llm", found.ID: "execute_tool search", end.ID: "call_llm"} {
		for _, path := range []string{traceOf, "/debug/trace/"} {
			status, body := b.do(http.MethodGet, path+id, nil)
			require.Equal(t, http.StatusOK, status, body)
			got := decode(t, body)
			require.Equal(t, name, got["name"])
			require.Equal(t, id, got["gcp.vertex.agent.event_id"])
			for _, key := range []string{"trace_id", "span_id", "parent_span_id", "start_time", "end_time", "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"} {
				require.Contains(t, got, key)
			}
		}
	}
	_, body := b.do(http.MethodGet, traceOf+found.ID, nil)
	require.Contains(t, decode(t, body)["gcp.vertex.agent.tool_call_args"], "query")
	require.JSONEq(t, `{"found":"call-1"}`, decode(t, body)["gcp.vertex.agent.tool_response"].(string))
	_, body = b.do(http.MethodGet, traceOf+end.ID, nil)
	require.Len(t, decode(t, decode(t, body)["gcp.vertex.agent.llm_request"].(string))["contents"], 3)

	for name, path := range map[string]string{
		"what a person said": traceOf + user.ID, "no event": traceOf + "nope", "of another app": "/dev/apps/other/debug/trace/" + said.ID,
	} {
		status, body := b.do(http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, status, name)
		require.Contains(t, decode(t, body)["error"], "no trace", name)
	}
}

// Traces have no user in their path: only what the caller may act for is there, and nothing tells the rest from what is not there.
func TestTracesOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	eve := agent.Owner{App: "tickets", User: "eve"}
	p := streamtest.New(t, b.store, eve, "hers")
	p.Post("secret plan", wire.ModeChat)
	p.Take()
	said := p.Say("secret answer")
	p.Finish(wire.EndDone, false)
	for path, other := range map[string]string{
		traceOf + "session/hers":                   traceOf + "session/none",
		"/debug/trace/session/hers":                "/debug/trace/session/none",
		traceOf + said.ID:                          traceOf + "none",
		"/debug/trace/" + said.ID:                  "/debug/trace/none",
		"/dev" + sessions + "/hers/events/x/graph": "/dev" + sessions + "/none/events/x/graph",
	} {
		status, body := b.do(http.MethodGet, path, nil)
		missing, same := b.do(http.MethodGet, other, nil)
		require.Equal(t, http.StatusNotFound, status, path)
		require.Equal(t, missing, status)
		hide := regexp.MustCompile(`hers|none|` + regexp.QuoteMeta(said.ID))
		require.Equal(t, hide.ReplaceAllString(same, "ID"), hide.ReplaceAllString(body, "ID"))
	}

	// A session of the same name is one's own.
	b.do(http.MethodPost, "/apps/tickets/users/bob/sessions/hers", nil)
	require.Empty(t, b.spans(traceOf+"session/hers"))
}

// However long a session is, what one answer holds is bounded.
func TestTraceOfALongSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("look", wire.ModeChat)
	first := p.Take()
	add := session.Append{Owner: ann, Session: "s1", Run: "run"}
	text := strings.Repeat("x", 2000)
	for i := range 5500 {
		e := session.Event{ID: "long-" + strconv.Itoa(i), InvocationID: first.InvocationID, Author: "helper"}
		e.Content = modelText(text)
		add.Events = append(add.Events, session.NewEvent{Event: e, Kind: session.KindModel, Parents: p.Heads})
		p.Heads = []string{e.ID}
	}
	_, err := b.store.Append(t.Context(), add)
	require.NoError(t, err)
	p.Finish(wire.EndDone, false)
	all := b.spans(traceOf + "session/s1")
	require.LessOrEqual(t, len(all), 5000)
	require.Greater(t, len(all), 1000)
	status, body := b.do(http.MethodGet, traceOf+"session/s1", nil)
	require.Equal(t, http.StatusOK, status)
	require.Less(t, len(body), 8<<20)
	status, body = b.do(http.MethodGet, traceOf+p.Heads[0], nil)
	require.Equal(t, http.StatusOK, status)
	require.Less(t, len(body), 2<<20)
	require.Contains(t, body, `omitted`)
}

func modelText(text string) *genai.Content {
	return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: text}}}
}
