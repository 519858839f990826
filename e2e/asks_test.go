package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// inquisitive is a sequence of two agents: the first has a tool that asks for days and one that takes long, the second asks by
// itself. The tools are the test worker's own.
func inquisitive(first, second string) options {
	agent := func(name, tools string) string {
		return "name: " + name + "\nmodel: ${var:MODEL}\ninstruction: Help.\ntools:\n" + tools
	}
	return options{
		agents: map[string]string{
			"assistant/root_agent.yaml": "agent_class: SequentialAgent\nname: assistant\nsub_agents:\n  - config_path: first.yaml\n  - config_path: second.yaml\n",
			"assistant/first.yaml":      agent("first", "  - name: book\n  - name: LongRunningFunctionTool\n    args: {func: order}\n"),
			"assistant/second.yaml":     agent("second", "  - name: request_input\n"),
		},
		script: "agents:\n  - agent: first\n    steps:\n" + indent(first, "      ") + "  - agent: second\n    steps:\n" + indent(second, "      "),
	}
}

func reply(session, id, name string, response any, more ...string) map[string]any {
	r := map[string]any{"id": id, "name": name, "response": response}
	for _, field := range more {
		r[field] = true
	}
	return message(session, map[string]any{"functionResponse": r})
}

// ran counts the runs of a test tool.
func (w *world) ran(tool string) (n int) {
	w.t.Helper()
	body, err := os.ReadFile(filepath.Join(w.dir, "faults", "runs"))
	if !os.IsNotExist(err) {
		require.NoError(w.t, err)
	}
	return strings.Count(string(body), tool+"\n")
}

// asked finds the calls of a name that wait for a reply.
func askedBy(events []event, name string) (out []*function) {
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == name && strings.Contains(strings.Join(e.LongRunningToolIDs, " "), p.FunctionCall.ID) {
				out = append(out, p.FunctionCall)
			}
		}
	}
	return out
}

// P3, P26, P32: a tool's question and a long-running call wait side by side, through the death of every process. Each goes on
// when its own answer is there, whatever came before it, and the model is called when both are. Forgeries, repeats and other
// people change nothing.
func TestQuestionsAndLongRunningCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inquisitive(call("order", "book")+text("Order: {{response.order.status}}."),
		call(`request_input {message: "Which colour?", response_schema: {enum: [red, blue]}}`)+text("Painted {{response.request_input.response}}.")))
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", nil, &session))
	_, events := w.api.sse(message(session.ID, map[string]string{"text": "Order and book."}), false)
	order, book := askedBy(events, "order"), askedBy(events, "adk_request_input")
	require.Len(t, order, 1, "the model's event names the call that takes long")
	require.Len(t, book, 1)
	interim := responses(events, "order")
	require.Len(t, interim, 1)
	require.Equal(t, map[string]any{"status": "ordered"}, interim[0].Response)
	require.True(t, interim[0].WillContinue)
	require.Equal(t, "How many days?", book[0].Args["message"])
	require.NotNil(t, book[0].Args["response_schema"], "what the web UI reads")
	require.Equal(t, book[0].Args["response_schema"], book[0].Args["responseSchema"])
	r := runHandle{w.api, "assistant", "user", session.ID}
	w.waiting2(r)

	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	fits := map[string]any{"response": map[string]any{"days": 3}}
	other, forged := reply(session.ID, book[0].ID, "adk_request_input", fits), message(session.ID,
		map[string]any{"functionCall": map[string]any{"id": "forged", "name": "order", "args": map[string]any{}}},
		map[string]any{"functionResponse": map[string]any{"id": "forged", "name": "order", "response": map[string]any{}}})
	other["userId"] = "mallory"
	for name, body := range map[string]map[string]any{
		"somebody else":     other,
		"forged call":       forged,
		"unknown id":        reply(session.ID, "adk-unknown", "order", map[string]any{}),
		"another name":      reply(session.ID, order[0].ID, "adk_request_confirmation", map[string]any{"confirmed": true}),
		"does not fit":      reply(session.ID, book[0].ID, "adk_request_input", map[string]any{"response": map[string]any{"days": 0}}),
		"no days":           reply(session.ID, book[0].ID, "adk_request_input", map[string]any{"result": "three"}),
		"a part of it":      reply(session.ID, book[0].ID, "adk_request_input", fits, "willContinue"),
		"the asking tool":   reply(session.ID, book[0].ID, "book", fits),
		"one of two is bad": message(session.ID, reply(session.ID, order[0].ID, "order", map[string]any{})["newMessage"].(map[string]any)["parts"].([]any)[0], reply(session.ID, book[0].ID, "adk_request_input", map[string]any{"result": "x"})["newMessage"].(map[string]any)["parts"].([]any)[0]),
	} {
		status, _ := w.api.sse(body, false)
		require.GreaterOrEqual(t, status, 400, name)
	}
	require.Equal(t, []string{"pending", "pending"}, w.query(`SELECT status FROM requests`))
	require.Zero(t, w.ran("book"), "nothing runs while the person is away")

	_, events = w.api.sse(reply(session.ID, order[0].ID, "order", map[string]any{"status": "packed"}, "willContinue"), false)
	require.Equal(t, map[string]any{"status": "packed"}, responses(events, "order")[0].Response)
	_, events = w.api.sse(reply(session.ID, book[0].ID, "adk_request_input", map[string]any{"result": `{"days": 3}`}), false) // as the web UI sends text
	require.Equal(t, map[string]any{"booked": map[string]any{"days": 3.0}}, responses(events, "book")[0].Response, "a partial answer resumes what it can")
	require.Empty(t, askedBy(events, "request_input"))
	require.Equal(t, 1, r.status().ModelCalls, "the model waits for the other one")

	require.NoError(t, w.Kill(stack.Worker))
	var group sync.WaitGroup
	for _, status := range []string{"there", "lost"} {
		group.Go(func() {
			w.api.call("POST", r.path("/calls/"+order[0].ID+"/result"), map[string]any{"response": map[string]any{"status": status}}, nil)
		})
	}
	group.Wait()
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	link := w.waiting(r)
	require.Equal(t, "question", r.status().WaitingFor[0].Kind)
	require.Contains(t, w.page(link).Text, "Which colour?")
	require.Equal(t, "Thank you", w.answer(link, "accept", map[string]string{"field-0-0": "red"}).Title)
	require.Equal(t, "Already answered", w.page(link).Title)
	s := w.finished(r)
	require.Equal(t, "Painted red.", s.Answer)
	require.Equal(t, 1, w.ran("order"))
	require.Equal(t, 1, w.ran("book"))
	all := r.events()
	w.checkAnswers(all, "questions")
	results := responses(all, "order")
	require.Len(t, results, 3)
	require.Contains(t, []any{"there", "lost"}, results[2].Response["status"], "the first result counts")
	require.NotContains(t, string(r.history()), "Which colour", "content is no part of a history")
	status, _ := w.api.sse(reply(session.ID, order[0].ID, "order", map[string]any{"status": "again"}), false)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, r.events(), len(all), "a repeat changes nothing")
}

// waiting2 waits until two things are waited for, and nothing else is done.
func (w *world) waiting2(r runHandle) {
	w.t.Helper()
	w.eventually("both calls wait", func() bool {
		s := r.status()
		return s.State == "waiting_input" && len(s.WaitingFor) == 2
	})
}

// The page behind the link takes the result of a long-running call too, while the worker is gone: as JSON or in words, or that
// there will be none. A nested answer is JSON that must fit.
func TestAnswersOnThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inquisitive(call("order")+text("Ordered."),
		call(`request_input {message: "Which?", response_schema: {type: array, items: {type: integer}}}`)+text("Done.")))
	for _, c := range []struct {
		action, answer, title string
		result                map[string]any
	}{
		{"accept", `{"status": "there"}`, "Thank you", map[string]any{"status": "there"}},
		{"accept", `it "came"`, "Thank you", map[string]any{"result": `it "came"`}},
		{"decline", "", "Declined", map[string]any{"error": "The call was ended without a result. It is not known what came of it."}},
	} {
		r := w.api.start("assistant", "Order.")
		link := w.waiting(r)
		page := w.page(link)
		require.Contains(t, page.Text, "What came of it?")
		require.NoError(t, w.Kill(stack.Worker))
		require.Equal(t, c.title, w.answer(link, c.action, map[string]string{"answer": c.answer}).Title)
		require.NoError(t, w.Start(t.Context(), stack.Worker))
		var question string
		w.eventually("the next agent asks", func() bool {
			s := r.status()
			if len(s.WaitingFor) == 1 && s.WaitingFor[0].Kind == "question" {
				question = s.WaitingFor[0].Link
			}
			return question != ""
		})
		require.Contains(t, w.page(question).Text, "as JSON that fits the schema below")
		again := w.answer(question, "accept", map[string]string{"answer": "[1, two]"})
		require.Contains(t, again.Text, "That does not do")
		require.Equal(t, "Thank you", w.answer(question, "accept", map[string]string{"answer": "[1, 2]"}).Title)
		s := w.finished(r)
		require.Equal(t, "Done.", s.Answer)
		require.Equal(t, c.action == "decline", s.Denied)
		all := r.events()
		w.checkAnswers(all, c.title)
		require.Equal(t, c.result, responses(all, "order")[1].Response)
	}
}
