package activities

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
)

// toolsetTransfer marks calls that hand the conversation to another agent. They are answered as they are stored.
const toolsetTransfer = "@transfer"

// offerTransfer adds ADK's transfer_to_agent where there is somebody to transfer to; the result is for the system
// instruction.
func (a *Activities) offerTransfer(def *agent.Definition, node *agent.Agent, out *turn) string {
	targets := def.Targets(node.Name)
	if len(targets) == 0 {
		return ""
	}
	names := make([]any, 0, len(targets))
	var list strings.Builder
	for _, target := range targets {
		names = append(names, target.Name)
		fmt.Fprintf(&list, "\n- %s", target.Name)
		if target.Description != "" {
			list.WriteString(": " + target.Description)
		}
	}
	out.tools[agent.TransferToAgent] = offered{toolset: toolsetTransfer, name: agent.TransferToAgent}
	config := out.request.Config
	if len(config.Tools) == 0 {
		config.Tools = []*genai.Tool{{}}
	}
	last := config.Tools[len(config.Tools)-1]
	last.FunctionDeclarations = append(last.FunctionDeclarations, &genai.FunctionDeclaration{
		Name:        agent.TransferToAgent,
		Description: "Hands the conversation to another agent, which goes on in your place. Use it when that agent is better suited to answer.",
		ParametersJsonSchema: map[string]any{
			"type": "object", "required": []string{"agent_name"},
			"properties": map[string]any{"agent_name": map[string]any{"type": "string", "enum": names, "description": "name of the agent"}},
		},
	})
	note := "You can hand the conversation to one of these agents:" + list.String() +
		"\nIf you are the best to answer, by your description, answer. If another is, call " + agent.TransferToAgent +
		" with its name, and say nothing besides."
	if parent := parentOf(def, node); parent != "" {
		note += " If none of them is and neither are you, transfer to " + parent + "."
	}
	return note
}

// parentOf is the agent above, if it may be transferred to.
func parentOf(def *agent.Definition, node *agent.Agent) string {
	for _, target := range def.Targets(node.Name) {
		for _, child := range target.SubAgents {
			if child.Name == node.Name {
				return target.Name
			}
		}
	}
	return ""
}

// transfer answers the call: nobody can be handed to but those that were offered.
func transfer(def *agent.Definition, from string, call *genai.FunctionCall) *told {
	name, _ := call.Args["agent_name"].(string)
	var names []string
	for _, target := range def.Targets(from) {
		if target.Name == name {
			return &told{transfer: name, response: map[string]any{"result": nil}}
		}
		names = append(names, target.Name)
	}
	return &told{response: map[string]any{"error": "There is no agent " + strconv.Quote(name) + " to transfer to. agent_name is one of: " + strings.Join(names, ", ") + "."}}
}
