package adk_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// shape is what a client of ADK finds in an answer: the keys that an object has, those that it may have, and the same of what a
// list holds. No value is null anywhere.
type shape struct {
	list  bool
	keys  []string
	maybe []string
	// of are the shapes behind keys.
	of map[string]shape
}

func (s shape) check(t *testing.T, at string, v any) {
	t.Helper()
	if s.list {
		all, ok := v.([]any)
		require.True(t, ok, "%s is no list", at)
		for _, one := range all {
			shape{keys: s.keys, maybe: s.maybe, of: s.of}.check(t, at+"[]", one)
		}
		return
	}
	if s.keys == nil && s.of == nil {
		return
	}
	got, ok := v.(map[string]any)
	require.True(t, ok, "%s is no object", at)
	for _, key := range s.keys {
		require.Contains(t, got, key, at)
	}
	for key := range got {
		require.True(t, slices.Contains(s.keys, key) || slices.Contains(s.maybe, key), "%s has %s, which ADK's has not", at, key)
	}
	for key, behind := range s.of {
		if inner, ok := got[key]; ok {
			behind.check(t, at+"."+key, inner)
		}
	}
}

func actionsShape() shape {
	return shape{
		keys:  []string{"stateDelta", "artifactDelta", "requestedAuthConfigs", "requestedToolConfirmations"},
		maybe: []string{"skipSummarization", "escalate", "transferToAgent"},
	}
}

func eventShape() shape {
	part := shape{list: true, keys: []string{}, maybe: []string{"text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData"}, of: map[string]shape{
		"functionCall": {keys: []string{"id", "name", "args"}}, "functionResponse": {keys: []string{"id", "name", "response"}, maybe: []string{"willContinue"}},
	}}
	return shape{
		keys: []string{"id", "invocationId", "author", "timestamp", "actions"},
		maybe: []string{
			"content", "branch", "longRunningToolIds", "partial", "turnComplete", "errorCode", "errorMessage", "finishReason", "modelVersion", "usageMetadata",
			"customMetadata", "isolationScope",
		},
		of: map[string]shape{"actions": actionsShape(), "content": {keys: []string{"role", "parts"}, of: map[string]shape{"parts": part}}},
	}
}

func sessionShape() shape {
	event := eventShape()
	event.list = true
	return shape{keys: []string{"id", "appName", "userId", "state", "events", "lastUpdateTime"}, of: map[string]shape{"state": {}, "events": event}}
}

// Every route has the status and the keys that adk-python gives it, field by field; docs/operations.md lists what differs.
func TestShapes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pending()
	said := p.Say("I go on meanwhile")
	b.do(http.MethodPost, sessions, `{"sessionId":"gone","state":{"a":1}}`)
	problem := shape{keys: []string{"error"}, maybe: []string{"request_id"}}
	session, list := sessionShape(), sessionShape()
	list.list = true
	app := shape{keys: []string{"name", "rootAgentName", "description", "language", "isComputerUse"}}
	agents := shape{keys: []string{"helper"}, of: map[string]shape{"helper": {keys: []string{"name", "description", "instruction", "tools", "sub_agents"}}}}
	withAgents := shape{keys: append(slices.Clone(app.keys), "agents"), of: map[string]shape{"agents": agents}}
	apps := shape{list: true, keys: app.keys}
	span := shape{list: true, keys: []string{"name", "start_time", "end_time", "trace_id", "span_id", "attributes"}, maybe: []string{"parent_span_id"}}
	dot := shape{keys: []string{"dotSrc"}}
	node := shape{keys: []string{"name", "type", "agent_class", "description", "tools", "sub_agents"}, maybe: []string{"model", "instruction", "output_key", "max_iterations"}}
	const dev = "/dev/apps/tickets"
	for _, c := range []struct {
		method, path, body string
		status             int
		shape              shape
	}{
		{"GET", "/health", "", 200, shape{keys: []string{"status"}}},
		{"GET", "/version", "", 200, shape{keys: []string{"version", "language", "language_version"}}},
		{"GET", "/list-apps", "", 200, shape{}},
		{"GET", "/list-apps?detailed=true&relative_path=./", "", 200, shape{keys: []string{"apps"}, of: map[string]shape{"apps": apps}}},
		{"GET", "/apps/tickets/app-info", "", 200, withAgents},
		{"GET", "/apps/nope/app-info", "", 404, problem},
		{"GET", sessions, "", 200, list},
		{"POST", sessions, "", 200, session},
		{"POST", sessions, `{"sessionId":"s1"}`, 409, problem},
		{"POST", sessions + "/s1", `{"a":1}`, 409, problem},
		{"POST", sessions + "/s2", `{"a":1}`, 200, session},
		{"POST", sessions, elsewhere, 200, session},
		{"GET", sessions + "/s1", "", 200, session},
		{"GET", sessions + "/nope", "", 404, problem},
		{"PATCH", sessions + "/s1", `{"state_delta":{"a":1}}`, 200, session},
		{"PATCH", sessions + "/nope", `{"stateDelta":{"a":1}}`, 404, problem},
		{"DELETE", sessions + "/gone", "", 200, shape{}},
		{"DELETE", sessions + "/gone", "", 404, problem},
		{"POST", "/run", `{"appName":"tickets","userId":"ann","sessionId":"nope","newMessage":{"role":"user","parts":[{"text":"hi"}]}}`, 404, problem},
		{"GET", dev + "/build_graph", "", 200, shape{keys: []string{"name", "root_agent"}, of: map[string]shape{"root_agent": node}}},
		{"GET", dev + "/build_graph_image?dark_mode=true", "", 200, shape{keys: []string{""}, of: map[string]shape{"": dot}}},
		{"GET", dev + "/graph", "", 200, dot},
		{"GET", dev + "/users/ann/sessions/s1/events/nope/graph", "", 200, shape{keys: []string{}}},
		{"GET", dev + "/debug/trace/session/s1", "", 200, span},
		{"GET", dev + "/debug/trace/session/nope", "", 404, problem},
		{"GET", dev + "/debug/trace/nope", "", 404, problem},
		{"GET", "/config/telemetry", "", 200, shape{keys: []string{"telemetry"}}},
		{"GET", dev + "/eval-sets", "", 200, shape{keys: []string{"evalSetIds"}}},
		{"GET", dev + "/eval-results", "", 200, shape{keys: []string{"evalResultIds"}}},
		{"GET", dev + "/metrics-info", "", 200, shape{keys: []string{"metricsInfo"}}},
		{"GET", "/run_live", "", 501, problem},
		// What is of the wrong type: 400, and the field's name.
		{"POST", sessions, `{"sessionId":1}`, 400, problem},
		{"POST", sessions, `{"state":[]}`, 400, problem},
		{"POST", sessions, `{"events":"x"}`, 400, problem},
		{"PATCH", sessions + "/s1", `{"stateDelta":1}`, 400, problem},
		{"POST", "/run", `{"appName":1,"userId":"ann","sessionId":"s1"}`, 400, problem},
		{"POST", "/run", `{"appName":"tickets","userId":[],"sessionId":"s1"}`, 400, problem},
		{"POST", "/run", `{"appName":"tickets","userId":"ann","sessionId":{}}`, 400, problem},
		{"POST", "/run", `{"appName":"tickets","userId":"ann","sessionId":"s1","stateDelta":"x"}`, 400, problem},
		{"POST", "/run", `{"appName":"tickets","userId":"ann","sessionId":"s1","streaming":"yes"}`, 400, problem},
		{"POST", "/run", `{"appName":"tickets","userId":"ann","sessionId":"s1","newMessage":"hi"}`, 400, problem},
	} {
		name := c.method + " " + c.path + " " + c.body
		status, body := b.do(c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s: %s", name, body)
		var got any
		require.NoError(t, json.Unmarshal([]byte(body), &got), name)
		if c.method == http.MethodDelete && status == http.StatusOK {
			require.Equal(t, "null", body)
			continue
		}
		noNulls(t, name, got)
		c.shape.check(t, name, got)
		if status == http.StatusBadRequest {
			field, _, _ := strings.Cut(strings.TrimLeft(c.body[strings.LastIndex(c.body, `,"`)+1:], `{"`), `"`)
			if c.body == `{"appName":1,"userId":"ann","sessionId":"s1"}` {
				field = "appName"
			} else if strings.Contains(c.body, `"userId":[]`) {
				field = "userId"
			}
			require.Contains(t, got.(map[string]any)["error"], field, name)
		}
	}
	_, body := b.do(http.MethodGet, dev+"/debug/trace/"+said.ID, nil)
	shape{
		keys: []string{
			"name", "start_time", "end_time", "trace_id", "span_id", "parent_span_id", "gcp.vertex.agent.event_id", "gcp.vertex.agent.llm_request",
			"gcp.vertex.agent.llm_response", "gcp.vertex.agent.invocation_id", "gcp.vertex.agent.session_id", "gen_ai.system",
		},
		maybe: []string{"gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.request.model"},
	}.check(t, "trace", decode(t, body))
	p.Finish(wire.EndDone, false)
}

func noNulls(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		require.Fail(t, "null", at)
	case []any:
		for _, one := range v {
			noNulls(t, at, one)
		}
	case map[string]any:
		for key, one := range v {
			noNulls(t, at+"."+key, one)
		}
	}
}
