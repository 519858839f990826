package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
)

// family is a tree of agents that may hand over, with one behind a tool and a workflow agent among them.
func family() *agent.Definition {
	llm := func(name string, children ...*agent.Agent) *agent.Agent {
		return &agent.Agent{Name: name, Kind: agent.KindLLM, Model: "m/m", SubAgents: children}
	}
	alone := llm("alone")
	alone.DisallowTransferToParent, alone.DisallowTransferToPeers = true, true
	expert := llm("expert", llm("assistant"))
	root := llm("root", llm("billing", llm("refunds")), llm("support"), alone,
		&agent.Agent{Name: "steps", Kind: agent.KindSequential, SubAgents: []*agent.Agent{llm("first"), llm("second")}})
	root.Tools = []agent.Tool{{Agent: &agent.AgentTool{Agent: expert}}}
	return &agent.Definition{App: "app", Root: root}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	d := family()
	require.NoError(t, d.Validate())
	for name, want := range map[string][]string{
		"root": {"billing", "support", "alone", "steps"}, "billing": {"refunds", "root", "support", "alone", "steps"},
		"refunds": {"billing"}, "alone": nil, "steps": nil, "first": nil, "expert": {"assistant"}, "assistant": {"expert"}, "nobody": nil,
	} {
		var names []string
		for _, a := range d.Targets(name) {
			names = append(names, a.Name)
		}
		require.Equal(t, want, names, name)
	}
	require.True(t, d.Transfers())
	d.Root.SubAgents = nil
	require.True(t, d.Transfers(), "the agent behind the tool has a sub-agent")
}

func TestResumes(t *testing.T) {
	t.Parallel()
	d := family()
	for name, want := range map[string]bool{
		"root": true, "billing": true, "refunds": true, "support": true, "alone": false, "steps": false, "first": false,
		"expert": false, "assistant": false, "user": false,
	} {
		require.Equal(t, want, d.Resumes(name), name)
		require.Equal(t, want || name == "alone", d.Converses(name), name)
	}
}

func TestAgentsBehindTools(t *testing.T) {
	t.Parallel()
	d := family()
	for name, want := range map[string]bool{"expert": true, "assistant": true, "root": false, "refunds": false, "nobody": false} {
		require.Equal(t, want, d.Behind(name), name)
	}
	var all []string
	for a := range d.All() {
		all = append(all, a.Name)
	}
	require.Equal(t, []string{"root", "expert", "assistant", "billing", "refunds", "support", "alone", "steps", "first", "second"}, all)
	d.Find("assistant").Model = ""
	require.Equal(t, "m/m", d.ModelOf("assistant"))
	require.Equal(t, []agent.Node{{Name: "expert", Kind: agent.KindLLM, Children: []agent.Node{{Name: "assistant", Kind: agent.KindLLM}}}}, d.Plan().Root.AgentTools)
}
