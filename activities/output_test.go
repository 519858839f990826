package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

const weather = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false}`

// forecaster has an output schema, and f as a tool where withTool.
func forecaster(t *testing.T, schema string, withTool bool) *world {
	t.Helper()
	a := llm("a")
	a.OutputSchema, a.OutputKey = json.RawMessage(schema), "weather"
	if withTool {
		a.Tools = functions("f")
	}
	return newWorld(t, a, tool(t, "f", func(context.Context, map[string]any) (string, error) { return "", nil }))
}

func setting(args map[string]any, more ...string) *models.Response {
	c := calling(more...)
	call := &genai.Part{FunctionCall: &genai.FunctionCall{Name: "set_model_response", Args: args}, ThoughtSignature: []byte("s")}
	c.Content.Parts = append([]*genai.Part{{Text: "thinking", Thought: true}, call}, c.Content.Parts...)
	return c
}

func TestOutputSchemaWithoutTools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []string
		text    string
		state   any
		code    string
	}{
		"fits":         {[]string{`{"city":"Rome"}`}, `{"city":"Rome"}`, map[string]any{"city": "Rome"}, ""},
		"fenced":       {[]string{"```json\n{\"city\":\"Rome\"}\n```"}, `{"city":"Rome"}`, map[string]any{"city": "Rome"}, ""},
		"second time":  {[]string{"It rains.", `{"city":"Rome"}`}, `{"city":"Rome"}`, map[string]any{"city": "Rome"}, ""},
		"no JSON":      {[]string{"It rains.", "It rains!", "It still rains."}, "It still rains.", nil, "OUTPUT_SCHEMA"},
		"another form": {[]string{`{"town":"Rome"}`, `[]`, `{"city":7}`}, `{"city":7}`, nil, "OUTPUT_SCHEMA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := forecaster(t, weather, false)
			took := w.says("weather?")
			var asked []*models.Request
			w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
				asked = append(asked, r)
				require.LessOrEqual(t, len(asked), len(tc.answers))
				r2 := answering(tc.answers[len(asked)-1])
				r2.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 10}
				return r2, nil
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Len(t, asked, len(tc.answers))
			require.Equal(t, "application/json", asked[0].Config.ResponseMIMEType)
			require.JSONEq(t, weather, string(asked[0].Config.ResponseJsonSchema.(json.RawMessage)))
			e := w.event(out.Event)
			require.Equal(t, tc.text, e.Text())
			require.Equal(t, tc.code, e.ErrorCode)
			require.Equal(t, tc.code != "", out.Failed)
			require.Equal(t, tc.state, e.Actions.StateDelta["weather"])
			require.EqualValues(t, 10*len(asked), e.UsageMetadata.TotalTokenCount, "what the repeats cost is counted")
			for i, r := range asked[1:] {
				require.Len(t, r.Contents, 3)
				require.Equal(t, tc.answers[i], r.Contents[1].Parts[0].Text)
				require.Contains(t, r.Contents[2].Parts[0].Text, "does not have the form")
			}
			require.Len(t, asked[0].Contents, 1, "an earlier request is not changed")
		})
	}
}

// With tools, the answer is a call that no activity runs; what is stored is a text like any final answer.
func TestOutputSchemaWithTools(t *testing.T) {
	t.Parallel()
	w := forecaster(t, weather, true)
	took := w.says("weather?")
	var asked *models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked = r
		return setting(map[string]any{"city": "Rome", "days": 3.0}), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Empty(t, out.Calls)
	require.False(t, out.Failed)
	e := w.event(out.Event)
	require.JSONEq(t, `{"city":"Rome","days":3}`, e.Text())
	require.Equal(t, map[string]any{"city": "Rome", "days": 3.0}, e.Actions.StateDelta["weather"])
	require.True(t, e.Content.Parts[0].Thought)
	require.Len(t, e.Content.Parts, 2)
	require.True(t, e.Final())
	declared := asked.Config.Tools[0].FunctionDeclarations
	require.Equal(t, "set_model_response", declared[1].Name)
	require.JSONEq(t, weather, string(declared[1].ParametersJsonSchema.(json.RawMessage)))
	require.Nil(t, asked.Config.ResponseJsonSchema, "providers do not take both")
	require.Contains(t, asked.Config.SystemInstruction.Parts[0].Text, "set_model_response")
}

// An answer in another form goes back to the model, a few times.
func TestOutputSchemaRefused(t *testing.T) {
	t.Parallel()
	w := forecaster(t, weather, true)
	heads := []string{w.says("weather?").Event}
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		return setting(map[string]any{"city": 7.0}), nil
	}
	for i := range 4 {
		out := must[wire.ModelResult](w, wire.ActivityCallModel, "m"+string(rune('0'+i)), wire.ModelInput{Agent: "a", Heads: heads})
		require.Len(t, out.Calls, 1)
		require.Empty(t, out.Calls[0].Tool)
		require.Contains(t, w.response(out.Calls[0].Answer)["error"], "city")
		heads = []string{out.Calls[0].Answer}
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "last", wire.ModelInput{Agent: "a", Heads: heads})
	require.True(t, out.Failed)
	require.Empty(t, out.Calls)
	e := w.event(out.Event)
	require.Equal(t, "OUTPUT_SCHEMA", e.ErrorCode)
	require.JSONEq(t, `{"city":7}`, e.Text(), "what there is stays")
	require.Empty(t, e.Actions.StateDelta)
	require.Equal(t, session.KindModel, e.Kind)

	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		return setting(map[string]any{"city": 7.0}), nil
	}
	again := w.says("and now?")
	out = must[wire.ModelResult](w, wire.ActivityCallModel, "next", wire.ModelInput{Agent: "a", Heads: []string{again.Event}})
	require.Len(t, out.Calls, 1, "each invocation has its own count")
}

// Beside other calls it comes too early: the model has not seen their results.
func TestOutputSchemaBesideOtherCalls(t *testing.T) {
	t.Parallel()
	w := forecaster(t, weather, true)
	took := w.says("weather?")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		return setting(map[string]any{"city": "Rome"}, "f"), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Len(t, out.Calls, 2)
	require.Contains(t, w.response(out.Calls[0].Answer)["error"], "by itself")
	require.Equal(t, "function/f", out.Calls[1].Tool)
	require.Empty(t, w.event(out.Event).Actions.StateDelta)
}

// A model that has tools and answers in words is made to call the one that gives the form.
func TestOutputSchemaInWords(t *testing.T) {
	t.Parallel()
	w := forecaster(t, `{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"string"}}}`, true)
	took := w.says("weather?")
	var asked []*models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		if asked = append(asked, r); len(asked) == 1 {
			return answering("Rome."), nil
		}
		return setting(map[string]any{"result": []any{"Rome"}}), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, `["Rome"]`, w.event(out.Event).Text())
	require.Equal(t, []any{"Rome"}, w.event(out.Event).Actions.StateDelta["weather"])
	require.Nil(t, asked[0].Config.ToolConfig)
	require.Equal(t, []string{"set_model_response"}, asked[1].Config.ToolConfig.FunctionCallingConfig.AllowedFunctionNames)
	parameters, err := json.Marshal(asked[0].Config.Tools[0].FunctionDeclarations[1].ParametersJsonSchema)
	require.NoError(t, err)
	require.Contains(t, string(parameters), `"$defs":{"n":`)
}

// A tool of the agent that has the name is hidden.
func TestOutputSchemaHidesATool(t *testing.T) {
	t.Parallel()
	a := llm("a", functions("x.set_model_response", "f")...)
	a.OutputSchema = json.RawMessage(weather)
	nothing := func(context.Context, map[string]any) (string, error) { return "", nil }
	w := newWorld(t, a, tool(t, "x.set_model_response", nothing), tool(t, "f", nothing))
	took := w.says("weather?")
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		require.Len(t, r.Config.Tools[0].FunctionDeclarations, 2)
		return setting(map[string]any{"city": "Rome"}), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.JSONEq(t, `{"city":"Rome"}`, w.event(out.Event).Text())
}

// Only an agent's own final words go into its key: not another agent's, not what it says while it calls tools.
func TestOutputKeyIsTheAgentsOwn(t *testing.T) {
	t.Parallel()
	a, b := llm("a", functions("f")...), llm("b")
	a.OutputKey, b.OutputKey = "a_says", "b_says"
	w := newWorld(t, &agent.Agent{Name: "root", Kind: agent.KindSequential, SubAgents: []*agent.Agent{a, b}},
		tool(t, "f", func(context.Context, map[string]any) (string, error) { return "", nil }))
	took := w.says("hello")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		r := calling("f")
		r.Content.Parts = append(r.Content.Parts, &genai.Part{Text: "Let me see."})
		return r, nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m1", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Empty(t, w.event(out.Event).Actions.StateDelta)
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return answering("from b"), nil }
	out = must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "b", Heads: []string{took.Event}})
	require.Equal(t, map[string]any{"b_says": "from b"}, w.event(out.Event).Actions.StateDelta)
}
