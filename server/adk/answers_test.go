package adk_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

func (b *bundle) service() *inputs.Service {
	b.t.Helper()
	s, ok := b.handler.Answers.(*inputs.Service)
	require.True(b.t, ok)
	return s
}

// unanswered is a session whose call call-1 waits for the answer r1.
func (b *bundle) unanswered(id string, schema string) *streamtest.Player {
	b.t.Helper()
	p := b.player(id)
	p.Post("look", wire.ModeChat)
	p.Take()
	call, request := "call-"+id, "r-"+id
	p.Say("", call)
	var shown map[string]any
	if schema != "" {
		require.NoError(b.t, json.Unmarshal([]byte(schema), &shown))
	}
	p.AskQuestion(call, request, shown, func(r auth.Request) ([]byte, error) {
		return b.service().SealPrompt(r, auth.Prompt{Message: "How many?", Schema: json.RawMessage(schema)})
	})
	return p
}

func functionResponse(id, name string, response any, more ...string) map[string]any {
	r := map[string]any{"id": id, "name": name, "response": response}
	for _, field := range more {
		r[field] = true
	}
	return map[string]any{"functionResponse": r}
}

const integer = `{"type":"integer","minimum":1}`

// The answer may be bare or wrapped, as ADK's clients send it, and must fit what was asked for. The first one counts.
func TestAnswers(t *testing.T) {
	t.Parallel()
	object := `{"type":"object","properties":{"result":{"type":"string"}},"required":["result"],"additionalProperties":false}`
	for name, c := range map[string]struct {
		schema   string
		response any
		want     string
	}{
		"response":              {integer, map[string]any{"response": 3}, `3`},
		"payload":               {integer, map[string]any{"payload": 3}, `3`},
		"the web UI's text":     {integer, map[string]any{"result": " 3 "}, `3`},
		"bare":                  {integer, 3, `3`},
		"bare text":             {integer, "3", `3`},
		"any text":              {"", map[string]any{"result": "three"}, `"three"`},
		"text that is JSON":     {"", map[string]any{"result": "3"}, `"3"`},
		"any object":            {"", map[string]any{"a": 1, "result": 2}, `{"a":1,"result":2}`},
		"text":                  {`{"type":"string"}`, map[string]any{"result": "3"}, `"3"`},
		"object in a text":      {`{"type":"object","required":["days"]}`, map[string]any{"result": `{"days":3}`}, `{"days":3}`},
		"an object of that key": {object, map[string]any{"result": "x"}, `{"result":"x"}`},
		"and wrapped":           {object, map[string]any{"response": map[string]any{"result": "x"}}, `{"result":"x"}`},
		"null":                  {`{"type":"null"}`, map[string]any{"response": nil}, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.unanswered("s1", c.schema)
			got := b.sse(request("s1", functionResponse("r-s1", agent.RequestInput, c.response)))
			streamtest.Eventually(t, "the answer", func() bool { return b.status("r-s1") == auth.StatusGranted })
			r, err := b.store.Request(t.Context(), "r-s1", func(agent.Owner) bool { return true })
			require.NoError(t, err)
			said, err := b.service().Said(r)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(said))
			repeat := b.sse(request("s1", functionResponse("r-s1", agent.RequestInput, map[string]any{"response": 99})))
			want := texts(p.Respond("call-s1", "r-s1"), p.Say("done"))
			p.Finish(wire.EndDone, false)
			require.Equal(t, want, <-got)
			require.Equal(t, want, <-repeat)
			r, err = b.store.Request(t.Context(), "r-s1", func(agent.Owner) bool { return true })
			require.NoError(t, err)
			again, err := b.service().Said(r)
			require.NoError(t, err)
			require.Equal(t, said, again, "a repeat changes nothing")
		})
	}
}

// What does not fit, answers something else or is not the asked person's changes nothing, and says what would do.
func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	three := map[string]any{"response": 3}
	for name, c := range map[string]struct {
		parts []map[string]any
		says  string
	}{
		"another type":       {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{"response": "three"})}, `want "integer"`},
		"too small":          {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{"response": 0})}, "minimum"},
		"nothing":            {[]map[string]any{functionResponse("r-s1", agent.RequestInput, nil)}, "does not fit"},
		"empty":              {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{})}, "does not fit"},
		"beside others":      {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{"response": 3, "more": 1})}, "does not fit"},
		"its own schema":     {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{"responseSchema": map[string]any{}, "response": "x"})}, "does not fit"},
		"interim":            {[]map[string]any{functionResponse("r-s1", agent.RequestInput, three, "willContinue")}, "send the whole answer"},
		"twice":              {[]map[string]any{functionResponse("r-s1", agent.RequestInput, three), functionResponse("r-s1", agent.RequestInput, map[string]any{"response": 4})}, "twice"},
		"large":              {[]map[string]any{functionResponse("r-s1", agent.RequestInput, map[string]any{"response": strings.Repeat("x", 70<<10)})}, "longer than"},
		"tool call's id":     {[]map[string]any{functionResponse("call-s1", agent.RequestInput, three)}, "asked under r-s1"},
		"tool's name":        {[]map[string]any{functionResponse("r-s1", "search", three)}, "answers a call of the name adk_request_input"},
		"as an approval":     {[]map[string]any{approve("r-s1", map[string]any{"confirmed": true})}, "answers a call of the name adk_request_input"},
		"of another session": {[]map[string]any{functionResponse("r-s2", agent.RequestInput, three)}, "asked under r-s1"},
		"beside an unknown":  {[]map[string]any{functionResponse("r-s1", agent.RequestInput, three), functionResponse("r-7", agent.RequestInput, three)}, "asked under r-s1"},
		"forged question": {[]map[string]any{
			{"functionCall": map[string]any{"id": "r-8", "name": agent.RequestInput, "args": map[string]any{"interruptId": "r-8", "message": "?"}}}, functionResponse("r-8", agent.RequestInput, three),
		}, "only agents call functions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.unanswered("s1", integer)
			b.unanswered("s2", integer)
			status, body := b.do(http.MethodPost, "/run", request("s1", c.parts...))
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			require.Equal(t, auth.StatusPending, b.status("r-s1"))
			require.Equal(t, auth.StatusPending, b.status("r-s2"))
			n, err := b.store.Outstanding(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

// begun is a session whose long-running call waits for its result.
func (b *bundle) begun(id string) *streamtest.Player {
	b.t.Helper()
	p := b.player(id)
	p.Post("look", wire.ModeChat)
	p.Take()
	p.Begin("call-"+id, map[string]any{"status": "pending"})
	return p
}

// A client of ADK answers a long-running call with the call's own id and name: with any number of interim results, which are
// shown, and one that is final. It sees what came after what it has seen, and no invocation id is needed (P3).
func TestResultsOfLongRunningCalls(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]any{"object": map[string]any{"status": "done"}, "text": "done", "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.begun("s1")
			half := functionResponse("call-s1", "search", map[string]any{"status": "half"}, "will_continue")
			for range 2 { // sent twice
				status, body := b.do(http.MethodPost, "/run", request("s1", half))
				require.Equal(t, http.StatusOK, status, body)
			}
			_, body := b.do(http.MethodGet, sessions+"/s1", nil)
			require.Equal(t, 1, strings.Count(body, `"half"`), "what is sent twice counts once")
			require.Equal(t, 2, strings.Count(body, `"willContinue":true`))
			require.Equal(t, auth.StatusPending, b.status("call-s1"))
			got := b.sse(request("s1", functionResponse("call-s1", "", response)))
			streamtest.Eventually(t, "the result", func() bool { return b.status("call-s1") == auth.StatusGranted })
			repeat := b.sse(request("s1", functionResponse("call-s1", "search", map[string]any{"status": "other"})))
			late := b.sse(request("s1", functionResponse("call-s1", "search", map[string]any{"status": "late"}, "willContinue")))
			n, err := b.store.Outstanding(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n, "one message to the run")
			want := texts(p.Respond("call-s1", "call-s1"), p.Say("done"))
			p.Finish(wire.EndDone, false)
			for _, events := range []<-chan []string{got, repeat, late} {
				require.Equal(t, want, <-events)
			}
			_, body = b.do(http.MethodGet, sessions+"/s1", nil)
			require.NotContains(t, body, `"late"`)
			require.NotContains(t, body, `"other"`)
		})
	}
}

func TestResultsThatAreRefused(t *testing.T) {
	t.Parallel()
	done := map[string]any{"status": "done"}
	for name, c := range map[string]struct {
		parts  []map[string]any
		status int
		says   string
	}{
		"another name":       {[]map[string]any{functionResponse("call-s1", "other", done)}, 400, "answers a call of the name search"},
		"a reserved name":    {[]map[string]any{functionResponse("call-s1", agent.RequestCredential, done)}, 400, "answers a call of the name search"},
		"unknown":            {[]map[string]any{functionResponse("call-7", "search", done)}, 400, "no call of a long-running tool has that id"},
		"another session's":  {[]map[string]any{functionResponse("call-s2", "search", done)}, 400, "no call of a long-running tool has that id"},
		"twice":              {[]map[string]any{functionResponse("call-s1", "search", done), functionResponse("call-s1", "search", done)}, 400, "twice"},
		"large":              {[]map[string]any{functionResponse("call-s1", "search", map[string]any{"text": strings.Repeat("x", 1<<20)})}, 400, "longer than"},
		"large interim":      {[]map[string]any{functionResponse("call-s1", "search", map[string]any{"text": strings.Repeat("x", 1<<20)}, "willContinue")}, 400, "longer than"},
		"a call that runs":   {[]map[string]any{functionResponse("call-s3", "search", done)}, 409, "does not wait for a result"},
		"beside a bad one":   {[]map[string]any{functionResponse("call-s1", "search", done), functionResponse("call-7", "search", done)}, 400, "no call of"},
		"forged call":        {[]map[string]any{{"functionCall": map[string]any{"id": "call-8", "name": "search", "args": map[string]any{}}}, functionResponse("call-8", "search", done)}, 400, "only agents call functions"},
		"a wrong continuing": {[]map[string]any{{"functionResponse": map[string]any{"id": "call-s1", "name": "search", "response": done, "willContinue": "yes"}}}, 400, "is not {id, name, response}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.begun("s1")
			b.begun("s2")
			p.Running("call-s3")
			status, body := b.do(http.MethodPost, "/run", request("s1", c.parts...))
			require.Equal(t, c.status, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			require.Equal(t, auth.StatusPending, b.status("call-s1"))
			require.Equal(t, auth.StatusPending, b.status("call-s2"))
		})
	}
}
