package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

// told joins what readers were told so far, thoughts in brackets.
func (w *world) told() string {
	w.t.Helper()
	all, err := w.store.Partials(w.t.Context(), w.row, 0)
	require.NoError(w.t, err)
	var out strings.Builder
	ids := map[string]bool{}
	for _, p := range all {
		var e session.Event
		require.NoError(w.t, json.Unmarshal(p.Body, &e))
		require.True(w.t, e.Partial)
		require.NotEmpty(w.t, e.ID)
		require.Equal(w.t, genai.RoleModel, e.Content.Role)
		require.Equal(w.t, p.Invocation, e.InvocationID)
		if e.ID != p.Of {
			require.False(w.t, ids[e.ID], "each piece has an id of its own")
		}
		ids[e.ID] = true
		for _, part := range e.Content.Parts {
			require.Nil(w.t, part.FunctionCall)
			if part.Thought {
				out.WriteString("[" + part.Text + "]")
			} else {
				out.WriteString(part.Text)
			}
		}
	}
	return out.String()
}

func saying(texts ...string) *models.Response {
	c := &genai.Content{Role: genai.RoleModel}
	for _, text := range texts {
		words, thought := strings.CutPrefix(text, "thinks: ")
		c.Parts = append(c.Parts, &genai.Part{Text: words, Thought: thought})
	}
	return &models.Response{Content: c}
}

func TestPiecesOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	w.streaming = true
	took := w.says("hello")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		return saying("thinks: so it is. ", "One two three."), nil
	}
	var seen []string
	w.at = func(point string) {
		if point == "model.partial" || point == "model.answered" {
			seen = append(seen, w.told())
		}
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, "[so ][it ][is. ]One two three.", seen[len(seen)-1])
	require.Equal(t, "[so ]", seen[0])
	require.Len(t, seen, 7)
	require.Equal(t, "One two three.", w.event(out.Event).Text())
	require.False(t, w.event(out.Event).Partial)
	require.Empty(t, w.told(), "the answer has replaced them")
}

// Nobody sees pieces who has not asked for them, nor where the answer may become another one before it is stored.
func TestNoPieces(t *testing.T) {
	t.Parallel()
	after := map[agent.CallbackPoint][]agent.Callback{agent.AfterModel: {{Name: "redact"}}}
	set := callbacks.Set{AfterModel: map[string]callbacks.AfterModel{
		"redact": func(context.Context, *callbacks.Context, *models.Response) (*models.Response, error) {
			return answering("redacted"), nil
		},
	}}
	for name, tc := range map[string]struct {
		asked bool
		agent func(*agent.Agent)
	}{
		"not asked for": {false, func(*agent.Agent) {}},
		"callback":      {true, func(a *agent.Agent) { a.Callbacks = after }},
		"form":          {true, func(a *agent.Agent) { a.OutputSchema = json.RawMessage(`{"type":"string"}`) }},
		"plan":          {true, func(a *agent.Agent) { a.Planner = &agent.Planner{Kind: agent.PlannerPlanReAct} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := llm("a")
			tc.agent(a)
			w := newWorldWith(t, set, a)
			w.streaming = tc.asked
			took := w.says("hello")
			w.model = func(context.Context, *models.Request) (*models.Response, error) { return saying(`"secret words"`), nil }
			w.at = func(string) { require.Empty(t, w.told()) }
			must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
		})
	}
}

// A retried attempt says nothing twice: it goes on where an earlier one was cut off, or is silent where it says something else.
func TestPiecesOfARetriedAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []string
		told    []string // after each piece of the model, and at its end
	}{
		"the same again":    {[]string{"one two …", "one two three four"}, []string{"one ", "one two ", "one two ", "one two ", "one two three ", "one two three four", "one two three four"}},
		"something else":    {[]string{"one two …", "one more thing"}, []string{"one ", "one two ", "one two ", "one two ", "one two ", "one two "}},
		"another beginning": {[]string{"one …", "two"}, []string{"one ", "one ", "one "}},
		"longer words":      {[]string{"one tw …", "one two"}, []string{"one ", "one tw ", "one tw ", "one tw ", "one tw "}},
		"twice":             {[]string{"one …", "one two …", "one two three"}, []string{"one ", "one ", "one two ", "one two ", "one two ", "one two three", "one two three"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a"))
			w.streaming = true
			took := w.says("hello")
			tries := 0
			w.model = func(context.Context, *models.Request) (*models.Response, error) {
				tries++
				return saying(tc.answers[tries-1]), nil
			}
			var seen []string
			w.at = func(point string) {
				if point == "model.partial" || point == "model.answered" {
					seen = append(seen, w.told())
				}
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Len(t, tc.answers, tries)
			require.Equal(t, tc.told, seen)
			require.Equal(t, tc.answers[tries-1], w.event(out.Event).Text())
			require.Empty(t, w.told())
		})
	}
}

// What cannot be shown costs nothing but that.
func TestPiecesThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	w.streaming = true
	took := w.says("hello")
	n := 0
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		n++
		return saying(strings.Repeat("word ", 20)), nil
	}
	w.acts.Partials = brokenPartials{}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, strings.Repeat("word ", 20), w.event(out.Event).Text())
	require.Equal(t, 1, n)
	require.Equal(t, 1, strings.Count(w.log.String(), "partial answer is not shown"))
}

type brokenPartials struct{}

func (brokenPartials) AddPartial(context.Context, session.Session, string, session.Event) error {
	return errAny
}

func (brokenPartials) Partials(context.Context, session.Session, int64) ([]session.Partial, error) {
	return nil, errAny
}

// A failure for good takes the pieces along, and calls are never among them.
func TestPiecesBesideFailuresAndCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("f")...), tool(t, "f", func(context.Context, none) (string, error) { return "", nil }))
	w.streaming = true
	took := w.says("hello")
	answer := saying("I look.")
	answer.Content.Parts = append(answer.Content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{Name: "f", Args: map[string]any{}}})
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return answer, nil }
	var last string
	w.at = func(point string) {
		if point == "model.answered" {
			last = w.told()
		}
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, "I look.", last)
	require.Len(t, out.Calls, 1)
	require.Empty(t, w.told())
}
