package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
)

// An agent that calls itself by way of another is a mistake that is told, not a program that never starts.
func TestAgentsInACircle(t *testing.T) {
	t.Parallel()
	a := &agent.Agent{Name: "a", Kind: agent.KindLLM, Model: "m/m"}
	b := &agent.Agent{Name: "b", Kind: agent.KindLLM, Tools: []agent.Tool{{Agent: &agent.AgentTool{Agent: a}}}}
	a.Tools = []agent.Tool{{Agent: &agent.AgentTool{Agent: b}}}
	err := (&agent.Definition{App: "app", Root: a}).Validate()
	require.ErrorContains(t, err, "a")
}
