package tarrytest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry"
	"tarry/agent"
	"tarry/callbacks"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/function"
)

func saves(ctx context.Context, name string) error {
	_, err := tools.SaveArtifact(ctx, tools.Artifact{Name: name, Part: genai.NewPartFromText("by " + name)})
	return err
}

// Tools of agents behind tools save, and callbacks on every side of the call of an agent; each event names what was saved on its
// way. What the session has said is remembered at its end.
func TestArtifactsAndMemory(t *testing.T) {
	t.Parallel()
	write := must(function.New("write", "Writes.", func(ctx context.Context, _ struct{}) (string, error) { return "written", saves(ctx, "tool") }))
	var remembered []tools.Memory
	set := callbacks.Set{
		BeforeTool: map[string]callbacks.BeforeTool{"save": func(ctx context.Context, _ *callbacks.Context, _ tools.Call) (map[string]any, error) {
			return nil, saves(ctx, "before_tool")
		}},
		AfterTool: map[string]callbacks.AfterTool{"save": func(ctx context.Context, _ *callbacks.Context, _ tools.Call, _ map[string]any) (map[string]any, error) {
			return nil, saves(ctx, "after_tool")
		}},
		AfterAgent: map[string]callbacks.AfterAgent{"remember": func(ctx context.Context, _ *callbacks.Context) (*genai.Content, error) {
			if err := tools.AddSessionToMemory(ctx); err != nil {
				return nil, err
			}
			found, err := tools.SearchMemory(ctx, "the poem")
			remembered = found
			return nil, err
		}},
	}
	inner := &agent.Agent{Name: "poet", Kind: agent.KindLLM, Model: "acme/large", Tools: []agent.Tool{{Function: "write"}}}
	outer := &agent.Agent{Name: "editor", Kind: agent.KindLLM, Model: "acme/large", Tools: []agent.Tool{{Agent: &agent.AgentTool{Agent: inner}}}, Callbacks: agent.Callbacks{
		agent.BeforeTool: {{Name: "save"}}, agent.AfterTool: {{Name: "save"}}, agent.AfterAgent: {{Name: "remember"}},
	}}
	a := tarry.App{Tools: []tools.Tool{write}, Callbacks: set, Agents: []*agent.Definition{{App: "press", Root: outer}}}
	for _, opts := range [][]tarrytest.Option{nil, {tarrytest.WithShortRuns()}} {
		m := tarrytest.NewModel(
			tarrytest.Calls("poet", map[string]any{"request": "A poem."}), tarrytest.Says("The poem is there."),
		).For("poet", tarrytest.Calls("write", nil), tarrytest.Says("Here."))
		run := tarrytest.Start(t, a, "Get me the poem.", append(opts, tarrytest.WithModel(m))...)
		require.Equal(t, "done", run.Outcome())
		texts := map[string]string{}
		for name, part := range run.Artifacts() {
			texts[name] = part.Text
		}
		require.Equal(t, map[string]string{"tool": "by tool", "before_tool": "by before_tool", "after_tool": "by after_tool"}, texts)
		var named []map[string]int
		for _, e := range run.Events() {
			if len(e.Actions.ArtifactDelta) > 0 {
				named = append(named, e.Actions.ArtifactDelta)
			}
		}
		require.Equal(t, []map[string]int{{"before_tool": 0}, {"tool": 0}, {"after_tool": 0}}, named)
		require.Len(t, remembered, 2)
		require.Equal(t, "Get me the poem.", remembered[0].Text)
		require.Equal(t, "The poem is there.", remembered[1].Text)
	}
}
