package agent

import "time"

// Plan is what a workflow decides by: the structure of a definition without prompts, models, URLs or anything else that
// is content. It travels in the workflow's start input, so its JSON only ever gains fields.
type Plan struct {
	App    string `json:"app"`
	Root   Node   `json:"root"`
	Limits Limits `json:"limits,omitzero"`
	// OnMessage is empty for [MessageQueue].
	OnMessage OnMessage `json:"on_message,omitempty"`
}

// Node is one agent of a plan.
type Node struct {
	Name          string        `json:"name"`
	Kind          Kind          `json:"kind"`
	MaxIterations int           `json:"max_iterations,omitempty"`
	Children      []Node        `json:"children,omitempty"`
	Toolsets      []string      `json:"toolsets,omitempty"` // those that must be listed before the model is called
	Deadline      time.Duration `json:"deadline,omitempty"` // of waits; 0: none
	OnDeadline    OnDeadline    `json:"on_deadline,omitempty"`
	Remind        time.Duration `json:"remind,omitempty"`
	// Escalates says that what ends this loop ends the loops around it too, as in ADK.
	Escalates bool `json:"escalates,omitempty"`
	// Custom is the registered name of a CustomAgent's function.
	Custom string `json:"custom,omitempty"`
	// AgentTools are the agents that this one calls like tools.
	AgentTools []Node `json:"agent_tools,omitempty"`
	// Before and After say that the agent has callbacks around it.
	Before bool `json:"before,omitempty"`
	After  bool `json:"after,omitempty"`
	// ToolCallbacks says that the agent has callbacks around its tool calls; those of agents behind tools run apart.
	ToolCallbacks bool `json:"tool_callbacks,omitempty"`
}

// Plan derives the structure of a valid definition.
func (d *Definition) Plan() Plan {
	p := Plan{App: d.App, Root: nodeOf(d.Root, false), Limits: d.Root.Limits, OnMessage: d.Root.OnMessage}
	if p.Limits.ModelCalls == 0 {
		p.Limits.ModelCalls = DefaultModelCalls
	}
	return p
}

func nodeOf(a *Agent, looped bool) Node {
	n := Node{
		Name: a.Name, Kind: a.Kind, MaxIterations: a.MaxIterations, Deadline: a.Wait.Deadline,
		OnDeadline: a.Wait.OnDeadline, Remind: a.Wait.Remind, Custom: a.Custom, Escalates: looped && a.Kind == KindLoop,
		Before: len(a.Callbacks[BeforeAgent]) > 0, After: len(a.Callbacks[AfterAgent]) > 0,
		ToolCallbacks: len(a.Callbacks[BeforeTool])+len(a.Callbacks[AfterTool]) > 0,
	}
	for _, tool := range a.Tools {
		if tool.MCP != nil {
			n.Toolsets = append(n.Toolsets, tool.MCP.Name)
		}
		if tool.Agent != nil {
			n.AgentTools = append(n.AgentTools, nodeOf(tool.Agent.Agent, false))
		}
	}
	for _, child := range a.SubAgents {
		n.Children = append(n.Children, nodeOf(child, looped || a.Kind == KindLoop))
	}
	return n
}
