package activities

import (
	"fmt"
	"slices"

	"google.golang.org/genai"

	"tarry/agent"
)

// instructions are ADK's: the root's global one, the agent's own, then who it is. Where there is a static instruction, the
// agent's own is said in the conversation instead.
func instructions(def *agent.Definition, node *agent.Agent, k *keys) (system []string, said string, err error) {
	global, err := render(def.Root.GlobalInstruction, k)
	if err != nil {
		return nil, "", fmt.Errorf("agent %s: global %w", def.Root.Name, err)
	}
	own, err := render(node.Instruction, k)
	if err != nil {
		return nil, "", fmt.Errorf("agent %s: %w", node.Name, err)
	}
	identity := fmt.Sprintf("You are an agent. Your internal name is %q.", node.Name)
	if node.Description != "" {
		identity += fmt.Sprintf(" The description about you is %q.", node.Description)
	}
	if node.StaticInstruction != "" {
		said, own = own, node.StaticInstruction
	}
	system = slices.DeleteFunc([]string{global, own, identity}, func(text string) bool { return text == "" })
	return system, said, nil
}

func render(template string, k *keys) (string, error) {
	text, err := agent.Render(template, k.lookup)
	if err == nil {
		err = k.failed
	}
	return text, err
}

// beforeUser puts c before the user's last words, as ADK does: behind what the model said or a tool answered last.
func beforeUser(contents []*genai.Content, c *genai.Content) []*genai.Content {
	at := len(contents)
	for at > 0 && words(contents[at-1]) {
		at--
	}
	return slices.Insert(slices.Clone(contents), at, c)
}

// words says whether c is a user's and no result of a call.
func words(c *genai.Content) bool {
	return c.Role == genai.RoleUser && !slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p.FunctionResponse != nil })
}
