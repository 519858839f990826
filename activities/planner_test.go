package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/wire"
)

func TestBuiltInPlanner(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Planner = &agent.Planner{Kind: agent.PlannerBuiltIn, ThinkingConfig: json.RawMessage(`{"thinkingBudget":512,"includeThoughts":true}`)}
	w := newWorld(t, a)
	took := w.says("hello")
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		require.EqualValues(t, 512, *r.Config.ThinkingConfig.ThinkingBudget)
		require.True(t, r.Config.ThinkingConfig.IncludeThoughts)
		return answering("/*PLANNING*/ is kept"), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, "/*PLANNING*/ is kept", w.event(out.Event).Text())
}

// Plan and reasoning become thoughts, the answer alone is text; what was written behind calls is dropped.
func TestPlanReAct(t *testing.T) {
	t.Parallel()
	call := &genai.Part{FunctionCall: &genai.FunctionCall{Name: "f"}}
	for name, tc := range map[string]struct {
		parts []*genai.Part
		want  []string // thoughts in brackets, calls as their name
		state any
	}{
		"whole":         {[]*genai.Part{{Text: "/*PLANNING*/ 1. ask /*REASONING*/ done /*FINAL_ANSWER*/\nIt rains."}}, []string{"( 1. ask /*REASONING*/ done)", "It rains."}, "It rains."},
		"in parts":      {[]*genai.Part{{Text: "/*REPLANNING*/again"}, {Text: "/*ACTION*/now"}, {Text: "/*REASONING*/so"}, {Text: "/*FINAL_ANSWER*/yes"}}, []string{"(again)", "(now)", "(so)", "yes"}, "yes"},
		"two answers":   {[]*genai.Part{{Text: "/*FINAL_ANSWER*/a/*FINAL_ANSWER*/b"}}, []string{"(/*FINAL_ANSWER*/a)", "b"}, "b"},
		"without tags":  {[]*genai.Part{{Text: "It rains."}}, []string{"It rains."}, "It rains."},
		"calls":         {[]*genai.Part{{Text: "/*PLANNING*/ask"}, call, call, {Text: "/*FINAL_ANSWER*/made up"}, call}, []string{"(ask)", "f", "f"}, nil},
		"thought stays": {[]*genai.Part{{Text: "/*FINAL_ANSWER*/x", Thought: true}, {Text: "y"}}, []string{"(/*FINAL_ANSWER*/x)", "y"}, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := llm("a", functions("f")...)
			a.Planner, a.OutputKey = &agent.Planner{Kind: agent.PlannerPlanReAct}, "out"
			w := newWorld(t, a, tool(t, "f", func(context.Context, map[string]any) (string, error) { return "", nil }))
			took := w.says("hello")
			w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
				require.Contains(t, r.Config.SystemInstruction.Parts[0].Text, "/*FINAL_ANSWER*/")
				return &models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: tc.parts}}, nil
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			var got []string
			for _, p := range w.event(out.Event).Content.Parts {
				switch {
				case p.FunctionCall != nil:
					got = append(got, p.FunctionCall.Name)
				case p.Thought:
					got = append(got, "("+p.Text+")")
				default:
					got = append(got, p.Text)
				}
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.state, w.event(out.Event).Actions.StateDelta["out"])
		})
	}
}

// A model that does not think by itself is shown its thoughts as words, and its form is that of the answer alone.
func TestPlanReActThinksAloud(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Planner, a.OutputSchema = &agent.Planner{Kind: agent.PlannerPlanReAct}, json.RawMessage(weather)
	w := newWorld(t, a)
	took := w.says("hello")
	var asked *models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked = r
		return answering(`/*PLANNING*/ask/*FINAL_ANSWER*/{"city":"Rome"}`), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m1", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.False(t, out.Failed)
	require.JSONEq(t, `{"city":"Rome"}`, w.event(out.Event).Text())
	must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "a", Heads: []string{out.Event}})
	require.Equal(t, "ask", asked.Contents[1].Parts[0].Text)
	require.False(t, asked.Contents[1].Parts[0].Thought)
	must[wire.ModelResult](w, wire.ActivityCallModel, "m3", wire.ModelInput{Agent: "a", Heads: []string{out.Event}})
	require.True(t, w.event(out.Event).Content.Parts[0].Thought, "what is stored is not changed")
}
