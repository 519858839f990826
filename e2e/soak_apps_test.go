package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// soakApps are the apps of the soak, and whether they are chats.
func soakApps() map[string]bool {
	return map[string]bool{"chores": false, "planner": false, "both": false, "helper": false, "guarded": false, "typed": false, "asked": false, "talk": true}
}

// soakOptions are jobs and a chat of all kinds of waits: a login before and beside what needs none, in a loop, and of an agent that
// is a tool; an approval, a key, a question.
func soakOptions(t *testing.T, free, keys string) options {
	t.Helper()
	o := example(t)
	o.mcp = demo.MCPConfig{}
	agent := func(name, more string) string {
		return "name: " + name + "\nmodel: ${var:MODEL}\ninstruction: Help.\n" + more
	}
	toolset := func(address string) string {
		return "  - name: McpToolset\n    args:\n      streamable_http_connection_params: {url: \"" + address + "\"}\n"
	}
	const own = "${var:MCP_URL}"
	for path, body := range map[string]string{
		"chores/root_agent.yaml":  agent("chores", "tools:\n"+toolset(own)),
		"both/root_agent.yaml":    "agent_class: SequentialAgent\nname: both\nsub_agents:\n  - config_path: side.yaml\n  - config_path: reporter.yaml\n",
		"both/side.yaml":          "agent_class: ParallelAgent\nname: side\nsub_agents:\n  - config_path: left.yaml\n  - config_path: right.yaml\n",
		"both/left.yaml":          agent("left", "tools:\n"+toolset(own)),
		"both/right.yaml":         agent("right", "tools:\n"+toolset(free)),
		"both/reporter.yaml":      agent("reporter", ""),
		"helper/root_agent.yaml":  agent("helper", "tools:\n  - name: AgentTool\n    args: {agent: {config_path: clerk.yaml}}\n"),
		"helper/clerk.yaml":       agent("clerk", "description: Knows the tickets.\ntools:\n"+toolset(own)),
		"guarded/root_agent.yaml": agent("guarded", "tools:\n"+toolset(free)+"      tarry: {confirm: [note]}\n"),
		"typed/root_agent.yaml":   keyAgent("typed", keys, "{type: apiKey, in: header, name: X-Api-Key}", ""),
		"asked/root_agent.yaml":   agent("asked", "tools:\n  - name: request_input\n"+toolset(own)),
		"talk/root_agent.yaml":    agent("talk", "tools:\n"+toolset(own)),
	} {
		o.agents[path] = body
	}
	steps := func(agent, steps string) string {
		return "\n  - agent: " + agent + "\n    steps:\n" + indent(steps, "      ")
	}
	const comment = "add_comment {ticket: REL-101, text: looked at}"
	o.script = strings.TrimRight(o.script, "\n") +
		steps("chores", call("list_tickets")+call(comment)+call("whoami")+text(soakAnswer)) +
		steps("left", call("list_tickets", "whoami")+text(soakAnswer)) +
		steps("right", call("note {text: beside}")+text("noted")) +
		steps("reporter", text("reported")) +
		steps("helper", call("clerk {request: Look at the tickets.}")+text("helped")) +
		steps("clerk", call("list_tickets")+call(comment)+text("looked")) +
		steps("guarded", call("note {text: hello}")+call("note {text: again}")+text("noted")) +
		steps("typed", call("whoami")+call("whoami")+text("typed")) +
		steps("asked", call("request_input {message: How many?}", "list_tickets")+text("asked")) +
		steps("talk", call("list_tickets")+call(comment)+text("talked"))
	return o
}

// soakAnswer stands at the end of a run whose agent has asked whose account it uses.
const soakAnswer = "account of {{response.whoami.user}}"

// soakPerson is the account of a user of the soak, at the provider and at the server that wants keys.
func soakPerson(user string) string {
	if strings.HasSuffix(user, "1") || strings.HasSuffix(user, "3") || strings.HasSuffix(user, "5") || strings.HasSuffix(user, "7") || strings.HasSuffix(user, "9") {
		return "bob"
	}
	return "alice"
}

// soakKeys is a server that takes a key of each person.
func soakKeys(t *testing.T) *demo.KeyServer {
	t.Helper()
	s := keyServer(t, demo.KeyConfig{In: "header", Name: "X-Api-Key"})
	for _, person := range []string{"alice", "bob"} {
		s.Add(person, soakKey(person))
	}
	require.NotEmpty(t, s.URL())
	return s
}

func soakKey(person string) string { return demo.DefaultMark + "key-of-" + person }
