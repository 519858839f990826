package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
)

// Runs are pinned to the hash they were started with. A change of these values means that every stored definition gets
// another hash: fields may be added (zero values stay out of the JSON), never renamed.
func TestHashIsStable(t *testing.T) {
	t.Parallel()
	hash, err := planner().Hash()
	require.NoError(t, err)
	require.Equal(t, "93c330ca3d5bc278ad6d3d5b2098c743", hash)
	small, err := (&agent.Definition{App: "a", Root: &agent.Agent{Name: "a", Kind: agent.KindLLM, Model: "m"}}).Hash()
	require.NoError(t, err)
	require.Equal(t, "4deb534db60edb250999f83282a68ada", small)
}

func TestHashTellsDefinitionsApart(t *testing.T) {
	t.Parallel()
	one, err := planner().Hash()
	require.NoError(t, err)
	changed := planner()
	changed.Root.SubAgents[0].Instruction += "!"
	two, err := changed.Hash()
	require.NoError(t, err)
	require.NotEqual(t, one, two)

	body, err := json.Marshal(planner())
	require.NoError(t, err)
	var stored agent.Definition
	require.NoError(t, json.Unmarshal(body, &stored))
	again, err := stored.Hash()
	require.NoError(t, err)
	require.Equal(t, one, again, "a definition that was stored and read again")

	changed.Root.SubAgents[0].GenerateContentConfig = json.RawMessage("{")
	_, err = changed.Hash()
	require.ErrorContains(t, err, "hash definition of planner")
}

func TestPlanHasStructureAndNoContent(t *testing.T) {
	t.Parallel()
	plan := planner().Plan()
	require.Equal(t, agent.Plan{
		App: "planner", Limits: agent.Limits{ModelCalls: 500},
		Root: agent.Node{Name: "loop", Kind: agent.KindLoop, MaxIterations: 5, Children: []agent.Node{
			{Name: "planner", Kind: agent.KindLLM, Toolsets: []string{"tickets"}, Deadline: 72 * time.Hour},
			{Name: "reviewer", Kind: agent.KindLLM},
		}},
	}, plan)
	body, err := json.Marshal(plan)
	require.NoError(t, err)
	for _, content := range []string{"Plan {topic}", "gemini", "example", "SECRET", "tarry"} {
		require.NotContains(t, string(body), content)
	}
}

func TestLookups(t *testing.T) {
	t.Parallel()
	d := planner()
	d.Root.SubAgents[1].Model = "own"
	require.Equal(t, d.Root.SubAgents[1], d.Find("reviewer"))
	require.Nil(t, d.Find("nobody"))
	require.Equal(t, "own", d.ModelOf("reviewer"))
	require.Equal(t, "gemini/gemini-2.5-flash", d.ModelOf("planner"))
	require.Empty(t, d.ModelOf("nobody"))
	require.Equal(t, "https://tickets.example/mcp", d.Toolset("tickets").URL)
	require.Nil(t, d.Toolset("nothing"))
	var names []string
	for a := range d.All() {
		names = append(names, a.Name)
		if a.Name == "planner" {
			break
		}
	}
	require.Equal(t, []string{"loop", "planner"}, names)

	empty := &agent.Definition{App: "empty"}
	require.Nil(t, empty.Find("x"))
	require.Empty(t, empty.ModelOf("x"))
	require.Nil(t, empty.Toolset("x"))
}

func TestBranch(t *testing.T) {
	t.Parallel()
	leaf := func(name string) *agent.Agent { return &agent.Agent{Name: name, Kind: agent.KindLLM} }
	inner := &agent.Agent{Name: "inner", Kind: agent.KindParallel, SubAgents: []*agent.Agent{leaf("d"), leaf("e")}}
	d := &agent.Definition{Root: &agent.Agent{Name: "root", Kind: agent.KindSequential, SubAgents: []*agent.Agent{
		leaf("a"),
		{Name: "outer", Kind: agent.KindParallel, SubAgents: []*agent.Agent{leaf("b"), {Name: "c", Kind: agent.KindLoop, SubAgents: []*agent.Agent{inner}}}},
	}}}
	for name, want := range map[string]string{
		"root": "", "a": "", "outer": "", "b": "outer.b", "c": "outer.c", "inner": "outer.c", "d": "outer.c.inner.d", "e": "outer.c.inner.e", "nobody": "",
	} {
		require.Equal(t, want, d.Branch(name), name)
	}
}
