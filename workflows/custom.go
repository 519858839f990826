package workflows

import (
	"maps"
	"slices"
)

// Agents are custom agents by the names they are registered under: the functions of definitions' CustomAgents. It must not
// change once a worker or a replayer has it; nil holds none.
type Agents map[string]AgentFunc

// AgentFunc is a custom agent: the counterpart of ADK's _run_async_impl.
type AgentFunc func(a *Agent) error

// Agent is what a custom agent works with.
type Agent struct{}

// Names lists the registered names, sorted.
func (a Agents) Names() []string { return slices.Sorted(maps.Keys(a)) }
