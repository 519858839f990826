package adk_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

// office is an app of every kind of agent and tool.
func office() *agent.Definition {
	return &agent.Definition{App: "office", Root: &agent.Agent{
		Name: "root", Kind: agent.KindLLM, Description: "answers the phone", Model: "gemini/flash", Instruction: "Secret of the house.",
		Tools: []agent.Tool{
			{Function: "lookup"},
			{Builtin: "request_input"},
			{MCP: &agent.MCPToolset{Name: "mail", URL: "https://mcp.example/mcp", Headers: map[string]agent.SecretTemplate{"X-Key": "${env:TARRY_SECRET_MAIL}"}}},
			{MCP: &agent.MCPToolset{Name: "files", URL: "https://mcp.example/files", Filter: []string{"read", "write"}, NamePrefix: "f"}},
			{Agent: &agent.AgentTool{Agent: &agent.Agent{Name: "expert", Kind: agent.KindLLM, Description: "knows", Instruction: "Know."}}},
		},
		SubAgents: []*agent.Agent{
			{Name: "line", Kind: agent.KindSequential, SubAgents: []*agent.Agent{
				{Name: "first", Kind: agent.KindLLM, Model: "openai/gpt", Instruction: "One.", OutputKey: "one"},
				{Name: "round", Kind: agent.KindLoop, MaxIterations: 3, SubAgents: []*agent.Agent{{Name: "again", Kind: agent.KindLLM, Instruction: "More."}}},
			}},
			{Name: "all", Kind: agent.KindParallel, SubAgents: []*agent.Agent{
				{Name: "left", Kind: agent.KindLLM, Instruction: "L."}, {Name: "right", Kind: agent.KindLLM, Instruction: "R."},
			}},
		},
	}}
}

func (b *bundle) office() {
	b.t.Helper()
	require.NoError(b.t, b.store.Publish(b.t.Context(), office()))
}

// as an operator, who may read prompts.
func (b *bundle) operator(path string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	require.NoError(b.t, err)
	r.Header.Set("X-Operator", "yes")
	response, err := (&http.Client{}).Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	var out json.RawMessage
	require.NoError(b.t, json.NewDecoder(response.Body).Decode(&out))
	return string(out)
}

func TestAppInfo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.office()
	status, body := b.do(http.MethodGet, "/apps/office/app-info", nil)
	require.Equal(t, http.StatusOK, status)
	got := decode(t, body)
	agents := got["agents"].(map[string]any)
	delete(got, "agents")
	require.Equal(t, map[string]any{"name": "office", "rootAgentName": "root", "description": "answers the phone", "language": "yaml", "isComputerUse": false}, got)
	require.Len(t, agents, 9)
	require.JSONEq(t, `{"name":"root","description":"answers the phone","instruction":"","sub_agents":["line","all"],"tools":[
		{"functionDeclarations":[{"name":"lookup"}]},{"functionDeclarations":[{"name":"request_input"}]},{"functionDeclarations":[{"name":"f_read"}]},
		{"functionDeclarations":[{"name":"f_write"}]},{"functionDeclarations":[{"name":"expert","description":"knows"}]}]}`, encode(t, agents["root"]))
	require.JSONEq(t, `{"name":"round","description":"","instruction":"","sub_agents":["again"],"tools":[]}`, encode(t, agents["round"]))

	said := b.operator("/apps/office/app-info") + b.operator("/dev/apps/office/build_graph")
	require.Contains(t, said, "Secret of the house.")
	for _, path := range []string{"/apps/office/app-info", "/dev/apps/office/build_graph", "/dev/apps/office/build_graph_image", "/list-apps?detailed=true"} {
		_, body := b.do(http.MethodGet, path, nil)
		require.NotContains(t, body, "Secret of the house.", path)
		require.NotContains(t, body+said, "TARRY_SECRET_MAIL", path)
		require.NotContains(t, body+said, "mcp.example", path)
		require.NotContains(t, body, "null", path)
	}
	status, body = b.do(http.MethodGet, "/apps/nope/app-info", nil)
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "nope")
}

func TestGraphs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.office()
	_, body := b.do(http.MethodGet, "/dev/apps/office/build_graph", nil)
	got := decode(t, body)
	require.Equal(t, "office", got["name"])
	root := got["root_agent"].(map[string]any)
	require.Equal(t, "root", root["name"])
	require.Equal(t, "gemini/flash", root["model"])
	require.Len(t, root["sub_agents"], 2)
	require.Contains(t, encode(t, root["tools"]), `{"name":"mail","type":"toolset"}`)
	line := root["sub_agents"].([]any)[0].(map[string]any)
	require.Equal(t, "SequentialAgent", line["agent_class"])

	images := func(query string) map[string]any {
		status, body := b.do(http.MethodGet, "/dev/apps/office/build_graph_image"+query, nil)
		require.Equal(t, http.StatusOK, status, body)
		return decode(t, body)
	}
	src := func(images map[string]any, path string) string {
		return images[path].(map[string]any)["dotSrc"].(string)
	}
	all := images("?dark_mode=false")
	require.Len(t, all, 4)
	whole := src(all, "")
	for _, edge := range []string{
		`"root" -> "lookup"`, `"root" -> "mail"`, `"root" -> "f_read"`, `"root" -> "expert"`, `"root" -> "line"`, `"line" -> "first"`, `"first" -> "round"`,
		`"round" -> "again"`, `"again" -> "again"`, `"all" -> "left"`, `"all" -> "right"`,
	} {
		require.Contains(t, whole, edge)
	}
	require.NotContains(t, whole, `"left" -> "right"`)
	require.NotContains(t, src(all, "line/round"), "first")
	require.NotEqual(t, whole, src(images("?dark_mode=true"), ""))
	require.Equal(t, map[string]any{"line": all["line"], "line/round": all["line/round"]}, images("?node=line"))
	require.Equal(t, map[string]any{"root/line/round": all["line/round"]}, images("?node=/root/line/round/"))
	for _, node := range []string{"nope", "line/nope", "../..", strings.Repeat("a/", 5000)} {
		status, body := b.do(http.MethodGet, "/dev/apps/office/build_graph_image?node="+node, nil)
		require.Equal(t, http.StatusNotFound, status)
		require.Less(t, len(body), 500)
	}
	_, body = b.do(http.MethodGet, "/dev/apps/office/graph", nil)
	require.Equal(t, whole, decode(t, body)["dotSrc"])
}

func TestEventGraph(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := &agent.Definition{App: "tickets", Root: &agent.Agent{Name: "helper", Kind: agent.KindLLM, Tools: []agent.Tool{{Function: "other \"quoted\" \\ tool"}}}}
	require.NoError(t, b.store.Publish(t.Context(), d))
	hash, err := d.Hash()
	require.NoError(t, err)
	b.do(http.MethodPost, sessions+"/s1", nil)
	stream := b.sse(say("s1", "look"))
	p := b.player("s1")
	require.Equal(t, hash, p.Row.Definition)
	user := p.Take()
	said, found := p.Say("", "call-1"), p.Respond("call-1", "")
	p.Finish(wire.EndDone, false)
	<-stream
	for _, prefix := range []string{"", "/dev"} {
		graph := func(event string) string {
			status, body := b.do(http.MethodGet, prefix+sessions+"/s1/events/"+event+"/graph", nil)
			require.Equal(t, http.StatusOK, status, body)
			if body == "{}" {
				return ""
			}
			return decode(t, body)["dotSrc"].(string)
		}
		require.Contains(t, graph(said.ID), `"helper" -> "search" [penwidth`)
		require.Contains(t, graph(found.ID), `"helper" -> "search" [penwidth=2 color="#a5d6a7" dir=back]`)
		require.Contains(t, graph(user.ID), `"other \"quoted\" \\ tool"`)
		require.Empty(t, graph("nope"))
		for _, path := range []string{"/none/events/" + said.ID + "/graph", "/%00/events/x/graph"} {
			status, _ := b.do(http.MethodGet, prefix+sessions+path, nil)
			require.Equal(t, http.StatusNotFound, status)
		}
	}
}

// What ADK's development server has and Tarry does not is answered so that the web UI goes on.
func TestRoutesOfTheWebUI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const app = "/dev/apps/tickets"
	for path, want := range map[string]string{
		app + "/builder?ts=1&tmp=true": "", "/builder/app/tickets": "",
		app + "/tests": `[]`, app + "/eval_sets": `[]`, "/apps/tickets/eval_sets": `[]`, app + "/eval_results": `[]`, "/apps/tickets/eval_results": `[]`,
		app + "/eval-sets": `{"evalSetIds":[]}`, app + "/eval-results": `{"evalResultIds":[]}`, "/apps/tickets/eval-sets": `{"evalSetIds":[]}`,
		app + "/metrics-info": `{"metricsInfo":[]}`, "/apps/tickets/metrics-info": `{"metricsInfo":[]}`, "/config/telemetry": `{"telemetry":false}`,
	} {
		status, body := b.do(http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, want, body, path)
		if strings.Contains(path, "tickets") {
			status, _ = b.do(http.MethodGet, strings.Replace(path, "tickets", "nope", 1), nil)
			require.Equal(t, http.StatusNotFound, status, path)
		}
	}
	status, body := b.do(http.MethodPost, "/config/telemetry", `{"telemetry":true}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `{"telemetry":false}`, body)
	for route, want := range map[string]int{
		"GET " + app + "/tests/a.json": 404, "GET " + app + "/eval_sets/a/evals": 404, "GET " + app + "/eval-sets/a/eval-cases/b": 404, "GET " + app + "/eval_results/a": 404,
		"GET " + app + "/eval-sets/a": 404, "POST " + app + "/eval-sets": 501, "POST " + app + "/eval_sets/a/add_session": 501, "PUT " + app + "/eval_sets/a/evals/b": 501,
		"DELETE " + app + "/eval-sets/a": 501, "POST " + app + "/eval-sets/a/run": 501, "POST " + app + "/tests/run": 501, "PUT " + app + "/tests/a": 501,
		"POST " + app + "/builder/save": 501, "POST " + app + "/builder/cancel": 501, "POST /builder/save": 501, "POST /apps/tickets/eval_sets/a/run_eval": 501,
		"GET /run_live?app_name=tickets&user_id=ann&session_id=s1": 501, "POST /agent-identity/finalize": 501,
	} {
		method, path, _ := strings.Cut(route, " ")
		status, body := b.do(method, path, nil)
		require.Equal(t, want, status, route)
		require.NotEmpty(t, decode(t, body)["error"], route)
	}
}
