package connect_test

import (
	"html"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/internal/form"
	"tarry/server/connect"
)

func asksQuestion(t *testing.T, q connect.Question) *harness {
	t.Helper()
	h := serve(t, false, func(*connect.Config) {})
	h.page.Input, h.page.ProviderHost, h.page.ServerHost, h.page.Question = true, "", "", &q
	h.result = connect.Result{Outcome: auth.StatusGranted, RequestID: "adk-r1", App: "planner", Correlator: "corr", Input: true}
	return h
}

// A tool's question is a form where its schema makes one, else one control; what it says is text.
func TestQuestionPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q     connect.Question
		shows []string
	}{
		"form": {connect.Question{Message: "How <b>many</b>?", Payload: `{"left":"12\u202e"}`, Fields: []form.Field{
			{Name: "field-0-0", Title: "Days", Kind: "number", Required: true},
		}}, []string{"A tool asks you", "How &lt;b&gt;many&lt;/b&gt;?", `\u202e`, `name="field-0-0"`, "Days"}},
		"text":   {connect.Question{Message: "Which colour?"}, []string{`<textarea id="answer" name="answer"`, "Your answer</label>"}},
		"JSON":   {connect.Question{Message: "Which?", Schema: `{"type":"array"}`}, []string{"as JSON that fits the schema", `&#34;type&#34;: &#34;array&#34;`}},
		"result": {connect.Question{Result: true}, []string{"What came of it?", "text or as a JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := asksQuestion(t, c.q).get(t, "/connect?request=adk-r1")
			require.Equal(t, http.StatusOK, a.StatusCode)
			for _, want := range append(c.shows, `value="decline" formnovalidate`, "Fill in no passwords") {
				require.Contains(t, a.body, want)
			}
			require.NotContains(t, a.body, "<script")
		})
	}
}

// An answer that does not fit is shown again, as it was filled in, with what is wrong.
func TestQuestionAnswers(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]connect.Question{
		"form": {Fields: []form.Field{{Name: "field-0-0", Title: "Days", Kind: "text"}}}, "text": {Message: "Which?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asksQuestion(t, q)
			a := h.get(t, "/connect?request=adk-r1")
			filled := answerForm(t, a, "action=accept&answer=%22three%22&field-0-0=%22three%22")
			h.resultErr = &connect.FormError{Text: "Days: is not a number."}
			again := h.post(t, "/connect/answer", filled, nil)
			require.Equal(t, http.StatusUnprocessableEntity, again.StatusCode)
			text := html.UnescapeString(again.body)
			require.Contains(t, text, "Days: is not a number.")
			require.Contains(t, text, `"three"`)
			h.resultErr = nil
			done := h.post(t, "/connect/answer", filled, nil)
			require.Contains(t, done.body, "Thank you")
		})
	}
}
