package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

func TestTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	first := w.says("one")
	require.Equal(t, wire.EventID(runID, "take-0", false, wire.RoleEvent), first.Event)
	second := must[wire.TakeResult](w, wire.ActivityTake, "none", wire.TakeInput{Heads: []string{first.Event}})
	require.Empty(t, second.Inbox)
	require.Equal(t, "one", w.event(first.Event).Text())
}

// Which errors of a model are tried again, and what becomes of the others (pitfalls T29, T30).
func TestModelErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		tries int
	}{
		"rate limit":     {&models.Error{Kind: models.KindRateLimit, StatusCode: 429, Provider: "test"}, 8},
		"server":         {&models.Error{Kind: models.KindServer, StatusCode: 503, Provider: "test"}, 8},
		"timeout":        {&models.Error{Kind: models.KindTimeout, Provider: "test"}, 8},
		"network":        {&models.Error{Kind: models.KindNetwork, Provider: "test"}, 8},
		"conflict":       {&models.Error{Kind: models.KindConflict, Provider: "test"}, 8},
		"unreadable":     {&models.Error{Kind: models.KindUnreadable, Provider: "test"}, 8},
		"invalid":        {&models.Error{Kind: models.KindInvalid, StatusCode: 400, Provider: "test"}, 1},
		"key":            {&models.Error{Kind: models.KindAuth, StatusCode: 401, Provider: "test"}, 1},
		"malformed call": {&models.Error{Kind: models.KindMalformedCall, Provider: "test"}, 1},
		"no known kind":  {errAny, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a"))
			took := w.says("hello")
			tries := 0
			w.model = func(context.Context, *models.Request) (*models.Response, error) { tries++; return nil, tc.err }
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Equal(t, tc.tries, tries)
			require.True(t, out.Failed)
			require.Equal(t, "MODEL_ERROR", w.event(out.Event).ErrorCode)
			require.Equal(t, session.KindNotice, w.event(out.Event).Kind)
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	took := w.says("hello")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		return nil, &models.Error{Kind: models.KindRateLimit, RetryAfter: 7 * time.Second, Provider: "test", Message: "secret prompt"}
	}
	e := failure(t, w.do(wire.ActivityCallModel, "m", 1, wire.ModelInput{Agent: "a", Heads: []string{took.Event}}, nil))
	require.Equal(t, 7*time.Second, e.NextRetryDelay())
	require.Equal(t, wire.ErrorRetry, e.Type())
	require.NotContains(t, e.Error(), "secret", "what stands in histories is said in our words")
}

// A stored answer is never produced again, whatever happens after it was stored (invariant I6); before that, it may be.
func TestModelCrashes(t *testing.T) {
	t.Parallel()
	for point, calls := range map[string]int{"model.before": 1, "model.answered": 2, "model.stored": 1} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a"))
			took := w.says("hello")
			n := 0
			w.model = func(context.Context, *models.Request) (*models.Response, error) { n++; return answering("hi"), nil }
			w.crash(point)
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Equal(t, calls, n)
			require.Equal(t, "hi", w.event(out.Event).Text())
		})
	}
}

// A model that panics is a failure like any other; the panic's text stays out of history and log.
func TestModelPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	took := w.says("hello")
	w.model = func(context.Context, *models.Request) (*models.Response, error) { panic("secret prompt") }
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.True(t, out.Failed)
	require.NotContains(t, w.log.String(), "secret prompt")
	require.NotContains(t, string(w.event(out.Event).Body), "secret prompt")
}

// Calls of tools that do not exist, and of reserved names, are answered at once and never scheduled.
func TestUnknownTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", append(functions("tools.x"), agent.Tool{Builtin: agent.ExitLoop})...),
		tool(t, "tools.x", func(context.Context, map[string]any) (string, error) { return "", nil }))
	out := w.calls("x", "nonesuch", agent.RequestCredential, agent.TransferToAgent, agent.ExitLoop, "tools.x")
	require.Len(t, out.Calls, 6)
	require.Equal(t, "function/tools%2Ex", out.Calls[0].Tool)
	require.Equal(t, "builtin/exit_loop", out.Calls[4].Tool)
	for _, i := range []int{1, 2, 3, 5} {
		require.Empty(t, out.Calls[i].Tool)
		require.Contains(t, w.response(out.Calls[i].Answer)["error"], "Call one of: exit_loop, x.")
	}
	ids := map[string]bool{}
	for i, call := range w.event(out.Event).Calls() {
		require.Equal(t, out.Calls[i].ID, call.ID)
		ids[call.ID] = true
	}
	require.Len(t, ids, 6)
}

// The answer of a model that gives the same object to everybody is not changed.
func TestModelsAnswerIsCopied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	took := w.says("hello")
	shared := calling("x")
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return shared, nil }
	must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Empty(t, shared.Content.Parts[0].FunctionCall.ID)
}

func TestInstructionAndOutputKey(t *testing.T) {
	t.Parallel()
	a, b := llm("a"), llm("b")
	a.OutputKey = "plan"
	b.Instruction, b.Description = "Check {plan}, {missing?}.", "Checks."
	w := newWorld(t, &agent.Agent{Name: "root", Kind: agent.KindSequential, SubAgents: []*agent.Agent{a, b}})
	took := w.says("hello")
	var asked *models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked = r
		return answering("step 1"), nil
	}
	first := must[wire.ModelResult](w, wire.ActivityCallModel, "m1", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, map[string]any{"plan": "step 1"}, w.event(first.Event).Actions.StateDelta)
	must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "b", Heads: []string{first.Event}})
	require.Equal(t, "Check step 1, .\n\nYou are an agent. Your internal name is \"b\". The description about you is \"Checks.\".",
		asked.Config.SystemInstruction.Parts[0].Text)
	require.Len(t, asked.Contents, 2, "what another agent said is retold")
	require.Contains(t, asked.Contents[1].Parts[1].Text, "[a] said: step 1")
}

// A static instruction goes out as it is; the other one, with state, then stands before the person's last words.
func TestGlobalAndStaticInstruction(t *testing.T) {
	t.Parallel()
	a := llm("a", functions("f")...)
	a.Instruction, a.StaticInstruction = "Topic: {topic}.", `Answer as {"a": 1}, {topic}.`
	w := newWorld(t, &agent.Agent{Name: "root", Kind: agent.KindSequential, GlobalInstruction: "All about {topic}.", SubAgents: []*agent.Agent{a}},
		tool(t, "f", func(context.Context, map[string]any) (string, error) { return "", nil }))
	w.state(map[string]any{"topic": "cats"})
	took := w.says("hello")
	var asked *models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked = r
		return calling("nonesuch"), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m1", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, "All about cats.\n\nAnswer as {\"a\": 1}, {topic}.\n\nYou are an agent. Your internal name is \"a\".", asked.Config.SystemInstruction.Parts[0].Text)
	require.Len(t, asked.Contents, 2)
	require.Equal(t, "Topic: cats.", asked.Contents[0].Parts[0].Text)
	require.Equal(t, genai.RoleUser, asked.Contents[0].Role)
	require.Equal(t, "hello", asked.Contents[1].Parts[0].Text)

	must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "a", Heads: []string{out.Calls[0].Answer}})
	require.Len(t, asked.Contents, 4, "behind the result of a call it is the last that is said")
	require.NotNil(t, asked.Contents[2].Parts[0].FunctionResponse)
	require.Equal(t, "Topic: cats.", asked.Contents[3].Parts[0].Text)
}

// A template that names a missing key ends the invocation with an event that a person can read.
func TestMissingKey(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Instruction = "Check {plan}."
	w := newWorld(t, a)
	took := w.says("hello")
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.True(t, out.Failed)
	require.Equal(t, "CONFIGURATION", w.event(out.Event).ErrorCode)
	require.Contains(t, w.event(out.Event).ErrorMessage, "{plan}")
}

func TestIncludeContentsNone(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.IncludeContents = "none"
	w := newWorld(t, a)
	first := w.says("one")
	var asked *models.Request
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked = r
		return answering("two"), nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m1", wire.ModelInput{Agent: "a", Heads: []string{first.Event}})
	_ = out
	second := w.says("three")
	must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "a", Heads: []string{second.Event}})
	require.Len(t, asked.Contents, 1)
	require.Equal(t, "three", asked.Contents[0].Parts[0].Text)
}

func TestUnknownModelAndBadConfig(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Model = "elsewhere/one"
	w := newWorld(t, a)
	took := w.says("hello")
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, "MODEL_UNKNOWN", w.event(out.Event).ErrorCode)

	b := llm("b")
	b.GenerateContentConfig = []byte(`{"temperature":"hot"}`)
	w = newWorld(t, b)
	took = w.says("hello")
	out = must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "b", Heads: []string{took.Event}})
	require.Equal(t, "CONFIGURATION", w.event(out.Event).ErrorCode)
}

// A blocked answer without content ends the invocation; one that has words does not.
func TestAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		response *models.Response
		failed   bool
	}{
		"blocked": {&models.Response{ErrorCode: "SAFETY", FinishReason: genai.FinishReasonSafety}, true},
		"empty":   {&models.Response{Content: &genai.Content{}}, false},
		"cut off": {&models.Response{Content: genai.NewContentFromText("I was", genai.RoleModel), ErrorCode: "MAX_TOKENS"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a"))
			took := w.says("hello")
			w.model = func(context.Context, *models.Request) (*models.Response, error) { return tc.response, nil }
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Equal(t, tc.failed, out.Failed)
		})
	}
}

// A session that nobody knows is final, a name that this worker does not know is not.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	e := failure(t, w.do("tarry.future", "1", 1, wire.TakeInput{}, nil))
	require.Equal(t, wire.ErrorUnknownActivity, e.Type())
	require.False(t, e.NonRetryable())
	e = failure(t, w.do(wire.ToolPrefix+"function/x", "2", many, wire.ToolInput{Call: "none"}, nil))
	require.Equal(t, wire.ErrorFinal, e.Type())
	require.NotContains(t, e.Error(), "none")
	require.NoError(t, w.store.Delete(t.Context(), w.row.Owner, w.row.ID))
	e = failure(t, w.do(wire.ActivityTake, "3", many, wire.TakeInput{}, nil))
	require.Equal(t, wire.ErrorFinal, e.Type())
}
