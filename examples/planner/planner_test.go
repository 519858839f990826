package planner_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/agent/yaml"
	"tarry/internal/demo"
	"tarry/models"
	"tarry/models/scripted"
)

func load(t *testing.T) *agent.Definition {
	t.Helper()
	def, err := yaml.LoadApp(".", yaml.Options{Vars: map[string]string{"MODEL": "scripted/script", "MCP_URL": "http://127.0.0.1:8080/mcp"}})
	require.NoError(t, err)
	return def
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	def := load(t)
	require.Equal(t, "planner", def.App)
	require.Equal(t, agent.Node{
		Name: "release_loop", Kind: agent.KindLoop, MaxIterations: 5,
		Children: []agent.Node{
			{Name: "planner", Kind: agent.KindLLM, Toolsets: []string{"mcp"}},
			{Name: "reviewer", Kind: agent.KindLLM},
		},
	}, def.Plan().Root)
	require.Equal(t, []string{"plan"}, agent.TemplateKeys(def.Find("reviewer").Instruction))
}

// conversation plays an agent's part of the loop: what the model sees of the person, of itself and of the other agent.
type conversation struct {
	t     *testing.T
	model *scripted.Model
	views map[string][]*genai.Content
	plans int
	trace []string
}

// turn runs an agent until it answers without calls or leaves the loop, and returns its text.
func (c *conversation) turn(name, other string) (string, bool) {
	c.t.Helper()
	for {
		var content *genai.Content
		for resp, err := range c.model.GenerateContent(c.t.Context(), &models.Request{Agent: name, Contents: models.EnsureUserTurn(c.views[name])}, false) {
			require.NoError(c.t, err)
			content = resp.Content
		}
		c.views[name] = append(c.views[name], content)
		results := &genai.Content{Role: genai.RoleUser}
		for _, part := range content.Parts {
			call := part.FunctionCall
			if call == nil {
				continue
			}
			args, err := json.Marshal(call.Args)
			require.NoError(c.t, err)
			c.trace = append(c.trace, fmt.Sprintf("%s %s %s", name, call.Name, args))
			if call.Name == agent.ExitLoop {
				return "", true
			}
			results.Parts = append(results.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: call.Name, Response: c.tool(call)}})
		}
		if len(results.Parts) == 0 {
			said := content.Parts[0].Text
			c.views[other] = append(c.views[other], genai.NewContentFromText("For context: ["+name+"] said: "+said, genai.RoleUser))
			return said, false
		}
		c.views[name] = append(c.views[name], results)
	}
}

func (c *conversation) tool(call *genai.FunctionCall) map[string]any {
	c.t.Helper()
	var open []any
	for _, ticket := range demo.Tickets() {
		body, err := json.Marshal(ticket)
		require.NoError(c.t, err)
		var fields map[string]any
		require.NoError(c.t, json.Unmarshal(body, &fields))
		if ticket.Status == "open" {
			open = append(open, fields)
		}
		if call.Name == "get_ticket" && call.Args["id"] == ticket.ID {
			return fields
		}
	}
	if call.Name == "create_plan" {
		c.plans++
		return map[string]any{"id": fmt.Sprintf("PLAN-%d", c.plans)}
	}
	require.Equal(c.t, "list_tickets", call.Name)
	return map[string]any{"tickets": open}
}

func TestScript(t *testing.T) {
	t.Parallel()
	script, err := scripted.Load("script.yaml")
	require.NoError(t, err)
	model, err := scripted.New(script)
	require.NoError(t, err)
	person := genai.NewContentFromText("Plan the next release.", genai.RoleUser)
	c := &conversation{t: t, model: model, views: map[string][]*genai.Content{"planner": {person}, "reviewer": {person}}}

	var plan string
	for round := 1; ; round++ {
		require.LessOrEqual(t, round, 2)
		plan, _ = c.turn("planner", "reviewer")
		if _, done := c.turn("reviewer", "planner"); done {
			break
		}
	}
	require.Equal(t, []string{
		`planner list_tickets {"status":"open"}`,
		`planner get_ticket {"id":"REL-103"}`,
		`planner get_ticket {"id":"REL-104"}`,
		`planner create_plan {"tickets":["REL-101","REL-104","REL-103"],"title":"Next release"}`,
		`planner create_plan {"tickets":["REL-101","REL-103","REL-104"],"title":"Next release"}`,
		`reviewer exit_loop {}`,
	}, c.trace)
	require.Contains(t, plan, "Release plan PLAN-2\n\n1. REL-101")
	for _, ticket := range demo.Tickets() {
		if ticket.Status == "open" {
			require.Contains(t, plan, ticket.ID+" "+ticket.Title)
		}
	}
}
