package scripted_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/models"
	"tarry/models/scripted"
)

func said(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

func answered(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }

func called(name string) *genai.Content {
	return genai.NewContentFromFunctionCall(name, nil, genai.RoleModel)
}

func responded(name string, response map[string]any) *genai.Content {
	return genai.NewContentFromFunctionResponse(name, response, genai.RoleUser)
}

func inContext(agent, text string) *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{Text: "For context:"}, {Text: "[" + agent + "] said: " + text},
	}}
}

func request(agent string, contents ...*genai.Content) *models.Request {
	return &models.Request{Agent: agent, Contents: contents}
}

func collect(ctx context.Context, m models.Model, req *models.Request, stream bool) ([]*models.Response, error) {
	var out []*models.Response
	for resp, err := range m.GenerateContent(ctx, req, stream) {
		if err != nil {
			return out, err
		}
		out = append(out, resp)
	}
	return out, nil
}

func one(t *testing.T, m models.Model, req *models.Request) *models.Response {
	t.Helper()
	got, err := collect(t.Context(), m, req, false)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func textOf(t *testing.T, resp *models.Response) string {
	t.Helper()
	var out string
	for _, p := range resp.Content.Parts {
		out += p.Text
	}
	return out
}

// TestReviewLoop plays the agents of a loop, each call with a model freshly read from the file: as if the process had
// been killed before every single one.
func TestReviewLoop(t *testing.T) {
	t.Parallel()
	fresh := func() models.Model {
		m, err := scripted.Factory(scripted.Config{Dir: "testdata"})(t.Context(), "review")
		require.NoError(t, err)
		return m
	}
	view := []*genai.Content{said("plan the oldest ticket")}
	next := func() *genai.Content {
		first := one(t, fresh(), request("planner", view...))
		require.Equal(t, first, one(t, fresh(), request("planner", view...)), "a retry gets the same answer")
		view = append(view, first.Content)
		return first.Content
	}
	call := next().Parts[0].FunctionCall
	require.Equal(t, "list_tickets", call.Name)
	require.Equal(t, map[string]any{"status": "open"}, call.Args)

	view = append(view, responded("list_tickets", map[string]any{"tickets": []any{map[string]any{"id": 41.0}}}))
	require.Equal(t, map[string]any{"id": 41.0}, next().Parts[0].FunctionCall.Args)

	view = append(view, responded("get_ticket", map[string]any{"id": 41.0, "title": "Login loops"}))
	require.Equal(t, map[string]any{
		"ticket": 41.0, "title": "Plan for Login loops", "steps": []any{"reproduce", "fix", "test"},
	}, next().Parts[0].FunctionCall.Args)

	view = append(view, responded("create_plan", map[string]any{"plan_id": "p-1"}))
	require.Equal(t, "I have written plan p-1.", next().Parts[0].Text)

	reviewer := []*genai.Content{said("plan the oldest ticket"), inContext("planner", "I have written plan p-1.")}
	review := one(t, fresh(), request("reviewer", reviewer...))
	require.Equal(t, "The plan names no owner. Please add one.", textOf(t, review))

	view = append(view, inContext("reviewer", textOf(t, review)))
	require.Equal(t, "Plan p-1 now names an owner: the support team.", next().Parts[0].Text)

	reviewer = append(reviewer, review.Content, inContext("planner", "Plan p-1 now names an owner: the support team."))
	require.Equal(t, "exit_loop", one(t, fresh(), request("reviewer", reviewer...)).Content.Parts[0].FunctionCall.Name)
}

func TestTurnCounting(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{
		{Text: "one"}, {Text: "two"}, {Text: "three"},
	}}}})
	require.NoError(t, err)
	parallel := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		genai.NewPartFromFunctionResponse("x", nil), genai.NewPartFromFunctionResponse("y", nil),
	}}
	for _, tt := range []struct {
		name string
		view []*genai.Content
		want string
	}{
		{"nothing", nil, "one"},
		{"first", []*genai.Content{said("hi")}, "one"},
		{"after calls", []*genai.Content{said("hi"), called("x"), parallel}, "two"},
		{"loop", []*genai.Content{said("hi"), answered("one"), inContext("b", "no")}, "two"},
		{"own text last", []*genai.Content{said("hi"), answered("one"), answered("two")}, "three"},
		{"made continuation", []*genai.Content{said("hi"), answered("one"), said(models.ContinueText)}, "two"},
		{"next message", []*genai.Content{said("hi"), answered("one"), answered("two"), said("more")}, "one"},
		{"only others", []*genai.Content{inContext("b", "hi")}, "one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, textOf(t, one(t, m, request("a", tt.view...))))
		})
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	script, err := scripted.Parse("rules.yaml", []byte(`
agents:
  - agent: a
    steps:
      - text: plain
      - when: {last_tool: search, contains: nothing found}
        text: empty
      - when: {last_tool: search}
        text: found
      - when: {turn: 3}
        text: third
      - when: {contains: HELP}
        text: help
      - when: {instruction: be rude}
        text: rude
  - agent: "*"
    steps:
      - when: {}
        text: "any: {{user_text}}"
`))
	require.NoError(t, err)
	m, err := scripted.New(script)
	require.NoError(t, err)
	rude := request("a", said("hi"))
	rude.Config = &genai.GenerateContentConfig{SystemInstruction: said("please be rude")}
	byInstruction := request("", said("hi"))
	byInstruction.Config = &genai.GenerateContentConfig{
		SystemInstruction: said(`You are an agent. Your internal name is "a".`),
	}
	for _, tt := range []struct {
		name string
		req  *models.Request
		want string
	}{
		{"no rule", request("a", said("hi")), "plain"},
		{"name from the instruction", byInstruction, "plain"},
		{"contains", request("a", said("please help")), "help"},
		{"contains in context", request("a", said("hi"), answered("x"), inContext("b", "help")), "help"},
		{"first rule wins", request("a", said("help"), called("search"), responded("search", map[string]any{"s": "Nothing found"})), "empty"},
		{"last tool", request("a", said("hi"), called("search"), responded("search", nil)), "found"},
		{"tool of an earlier turn", request("a", said("hi"), called("search"), responded("search", nil), answered("x")), "third"},
		{"instruction", rude, "rude"},
		{"any agent", request("b", said("yo"), answered("x"), answered("y")), "any: yo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, textOf(t, one(t, m, tt.req)))
		})
	}
}

func TestNoAnswerSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Name: "s.yaml", Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{
		{Text: "one"},
		{When: &scripted.When{LastTool: "search"}, Text: "found"},
		{ID: "bad", When: &scripted.When{Contains: "fill"}, Text: "{{last_response.id}}"},
	}}}})
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		req  *models.Request
		want []string
	}{
		{
			"turn", request("a", said("hi"), called("x"), responded("x", nil)),
			[]string{`s.yaml: no answer for agent "a" at turn 2`, "new responses of: x", "steps for 1 turns", "a/2", "LastTool:search"},
		},
		{"agent", request("b", said("hi")), []string{`agent "b" at turn 1`, "the script has the agents a"}},
		{"no response", request("a", said("fill")), []string{"step a/bad: {{last_response.id}}: no such function response"}},
		{
			"no field", request("a", said("hi"), called("x"), responded("x", map[string]any{"fill": "secret", "b": 1})),
			[]string{"the response of x has the fields b, fill"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := collect(t.Context(), m, tt.req, true)
			require.Empty(t, got)
			var call *models.Error
			require.ErrorAs(t, err, &call)
			require.False(t, call.Retryable())
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{
		Agent: strings.Repeat("ä", 5000), Steps: []scripted.Step{{Text: "x"}},
	}}})
	require.NoError(t, err)
	_, err = collect(t.Context(), m, request("b"), false)
	require.Less(t, len(err.Error()), 700)
	require.True(t, utf8.ValidString(err.Error()))
}

func TestPlaceholdersLookInsideWrappers(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{
		{When: &scripted.When{}, Text: "{{ last_response.items.1.id }} of {{response.list.items}}"},
	}}}})
	require.NoError(t, err)
	items := map[string]any{"items": []any{map[string]any{"id": "x"}, map[string]any{"id": "y"}}}
	encoded := `{"items":[{"id":"x"},{"id":"y"}]}`
	for name, response := range map[string]map[string]any{
		"plain":      items,
		"structured": {"structuredContent": items},
		"result":     {"result": items},
		"nested":     {"result": map[string]any{"structuredContent": items}},
		"json":       {"result": encoded},
		"mcp":        {"content": []any{map[string]any{"type": "text", "text": encoded}}},
		"nested mcp": {"output": map[string]any{"content": []any{map[string]any{"type": "text", "text": encoded}}}},
	} {
		got := one(t, m, request("a", said("hi"), called("list"), responded("list", response)))
		require.Equal(t, `y of [{"id":"x"},{"id":"y"}]`, textOf(t, got), name)
	}
}

func TestAnswersDoNotShareArguments(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{
		{Calls: []scripted.Call{{Name: "x", Args: map[string]any{"in": map[string]any{"n": 1}}}, {Name: "y"}}},
	}}}})
	require.NoError(t, err)
	first := one(t, m, request("a", said("hi"))).Content.Parts
	require.Len(t, first, 2)
	require.NotNil(t, first[1].FunctionCall.Args)
	first[0].FunctionCall.Args["in"].(map[string]any)["n"] = 2
	again := one(t, m, request("a", said("hi"))).Content.Parts
	require.Equal(t, map[string]any{"in": map[string]any{"n": 1}}, again[0].FunctionCall.Args)
}

func TestStreamComesByWord(t *testing.T) {
	t.Parallel()
	m, err := scripted.New(scripted.Script{Name: "s", Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{{
		Thought: "let me see", Text: "a  b c ", Calls: []scripted.Call{{Name: "x"}},
		Usage: &scripted.Usage{Prompt: 1, Output: 2, Thoughts: 3},
	}}}}})
	require.NoError(t, err)
	got, err := collect(t.Context(), m, request("a", said("hi")), true)
	require.NoError(t, err)
	var thought, text strings.Builder
	for _, partial := range got[:len(got)-1] {
		require.True(t, partial.Partial)
		require.Nil(t, partial.UsageMetadata)
		require.NotEmpty(t, partial.Content.Parts[0].Text)
		if partial.Content.Parts[0].Thought {
			thought.WriteString(partial.Content.Parts[0].Text)
		} else {
			text.WriteString(partial.Content.Parts[0].Text)
		}
	}
	require.Equal(t, "let me see", thought.String())
	require.Equal(t, "a  b c ", text.String())
	last := got[len(got)-1]
	require.Equal(t, one(t, m, request("a", said("hi"))), last, "the last of a stream is the whole answer")
	require.False(t, last.Partial)
	require.True(t, last.TurnComplete)
	require.Equal(t, int32(6), last.UsageMetadata.TotalTokenCount)
	require.Equal(t, "scripted/s", last.ModelVersion)
	require.Equal(t, genai.FinishReasonStop, last.FinishReason)
}

func TestErrorSteps(t *testing.T) {
	t.Parallel()
	script, err := scripted.Parse("e.yaml", []byte(`
agents:
  - agent: a
    steps:
      - error: {status: 429, retry_after: 7s}
      - error: {}
`))
	require.NoError(t, err)
	m, err := scripted.New(script)
	require.NoError(t, err)
	for range 2 {
		_, err = collect(t.Context(), m, request("a", said("hi")), false)
		var call *models.Error
		require.ErrorAs(t, err, &call)
		require.Equal(t, 429, call.StatusCode)
		require.Equal(t, 7*time.Second, call.RetryAfter)
	}
	_, err = collect(t.Context(), m, request("a", said("hi"), answered("x")), false)
	var call *models.Error
	require.ErrorAs(t, err, &call)
	require.Equal(t, models.KindNetwork, call.Kind)
}

func TestDelayIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{
			{Text: "x", Delay: time.Minute},
		}}}})
		require.NoError(t, err)
		start := time.Now()
		one(t, m, request("a"))
		require.Equal(t, time.Minute, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = collect(ctx, m, request("a"), false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}

func TestJournalCountsCallsOfSeveralModels(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "calls.jsonl")
	var mu sync.Mutex
	var seen []scripted.Record
	factory := scripted.Factory(scripted.Config{Dir: "testdata", Journal: journal, OnCall: func(r scripted.Record) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
	}})
	var wg sync.WaitGroup
	for range 4 {
		m, err := factory(t.Context(), "review.yaml")
		require.NoError(t, err)
		for range 25 {
			wg.Go(func() {
				if _, err := collect(context.Background(), m, request("reviewer", said("hi")), false); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.Len(t, seen, 100)
	written, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	require.Len(t, lines, 100)
	for _, line := range lines {
		var r scripted.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, "review.yaml", r.Model)
		require.Equal(t, "reviewer", r.Agent)
		require.Equal(t, "reviewer/1", r.Answer)
		require.Equal(t, 1, r.Turn)
		require.False(t, r.Time.IsZero())
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	calls := 0
	m := scripted.Func(func(_ context.Context, req *models.Request) (*models.Response, error) {
		if calls++; calls == 1 {
			return nil, &models.Error{Kind: models.KindServer}
		}
		if len(req.Contents) > 1 {
			return scripted.FunctionCall("x", map[string]any{"n": 1}), nil
		}
		return scripted.Text("hello there"), nil
	})
	_, err := collect(t.Context(), m, request("a", said("hi")), false)
	require.Error(t, err)
	got, err := collect(t.Context(), m, request("a", said("hi")), true)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, "hello there", textOf(t, got[2]))
	require.Equal(t, "x", one(t, m, request("a", said("hi"), said("ho"))).Content.Parts[0].FunctionCall.Name)
}
