package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/tools/mcp"
)

// rpcID is the id of a JSON-RPC request, as it was sent.
func rpcID(q request) string {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal([]byte(q.Body), &m)
	return string(m.ID)
}

// params are those of a JSON-RPC request without metadata.
func params(t *testing.T, q request) map[string]any {
	t.Helper()
	var m struct {
		Params map[string]any `json:"params"`
	}
	require.NoError(t, json.Unmarshal([]byte(q.Body), &m))
	delete(m.Params, "_meta")
	return m.Params
}

func meta(t *testing.T, q request) map[string]any {
	t.Helper()
	var m struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	require.NoError(t, json.Unmarshal([]byte(q.Body), &m))
	return m.Params.Meta
}

// answers replies to calls with members of a JSON-RPC response ("error": …), in order; then the server does.
func (s *server) answers(status int, members ...string) {
	s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
		if q.Method != "tools/call" {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(members) == 0 {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, rpcID(q), members[0])
		members = members[1:]
		return true
	})
}

func wants(requests, state string) string {
	return fmt.Sprintf(`"result":{"resultType":"input_required","inputRequests":%s,"requestState":%q}`, requests, state)
}

func visit(elicitations string) string {
	return fmt.Sprintf(`"error":{"code":-32042,"message":"URL needed","data":{"elicitations":%s}}`, elicitations)
}

func logging(into *bytes.Buffer) func(*mcp.Config) {
	return func(c *mcp.Config) {
		c.Log = slog.New(slog.NewTextHandler(into, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

func TestURLElicitationOfTheOldRevision(t *testing.T) {
	t.Parallel()
	const url = "https://pay.example/confirm?token=SECRET-OF-URL"
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{legacy: true})
			again := visit(`[{"mode":"url","elicitationId":"e1","url":"` + url + `","message":"Pay"},{"mode":"url","elicitationId":"e2","url":"https://x.example","message":"Look"}]`)
			s.answers(status, again, again)
			var logged bytes.Buffer
			ts := open(t, newOpener(t, logging(&logged)), definition(s.URL), alice(), nil)

			call := echoCall("call-1", "x")
			for range 2 {
				_, err := ts.Call(t.Context(), call)
				var asked *tools.InputRequiredError
				require.ErrorAs(t, err, &asked)
				require.Equal(t, &tools.InputRequiredError{Plain: true, Inputs: []tools.Input{
					{Key: "e1", Mode: tools.InputURL, URL: url, Message: "Pay"},
					{Key: "e2", Mode: tools.InputURL, URL: "https://x.example", Message: "Look"},
				}}, asked)
				require.NotContains(t, err.Error(), "pay.example")
				call.Resume = &tools.Resume{} // and it may be asked for again
			}
			res, err := ts.Call(t.Context(), call)
			require.NoError(t, err)
			require.Equal(t, "x/call-1/", text(t, res))

			sent := s.seen("tools/call")
			require.Len(t, sent, 3)
			require.Equal(t, params(t, sent[0]), params(t, sent[2]), "the same call")
			require.NotEqual(t, rpcID(sent[0]), rpcID(sent[2]))
			require.NotContains(t, logged.String(), "SECRET-OF-URL")
		})
	}
}

func TestInputOfTheNewRevision(t *testing.T) {
	t.Parallel()
	const state = "opaque \"state\" <&> \u2028 "
	s := newServer(t, wire{modern: true})
	s.answers(http.StatusOK,
		wants(`{"form":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},
			"go":{"method":"elicitation/create","params":{"mode":"url","message":"Pay","url":"https://pay.example/x"}}}`, state),
		wants(`{"more":{"method":"elicitation/create","params":{"message":"Sure?"}}}`, ""),
	)
	ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
	call := echoCall("call-1", "x")

	_, err := ts.Call(t.Context(), call)
	var asked *tools.InputRequiredError
	require.ErrorAs(t, err, &asked)
	require.False(t, asked.Plain)
	require.Len(t, asked.Inputs, 2)
	require.JSONEq(t, `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, string(asked.Inputs[0].Schema))
	asked.Inputs[0].Schema = nil
	require.Equal(t, []tools.Input{
		{Key: "form", Mode: tools.InputForm, Message: "Who?"}, {Key: "go", Mode: tools.InputURL, Message: "Pay", URL: "https://pay.example/x"},
	}, asked.Inputs)

	// On another worker, days later.
	ts = open(t, newOpener(t), definition(s.URL), alice(), nil)
	call.Resume = &tools.Resume{State: asked.State, Answers: map[string]tools.InputAnswer{
		"form": {Action: tools.InputAccept, Content: map[string]any{"name": "Ann"}},
		"go":   {Action: tools.InputDecline, Content: map[string]any{"ignored": true}},
	}}
	_, err = ts.Call(t.Context(), call)
	require.ErrorAs(t, err, &asked, "each round may ask again")
	require.Empty(t, asked.State)

	call.Resume = &tools.Resume{State: asked.State, Answers: map[string]tools.InputAnswer{"more": {Action: tools.InputAccept}}}
	res, err := ts.Call(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "x/call-1/", text(t, res))

	sent := s.seen("tools/call")
	require.Len(t, sent, 3)
	require.Equal(t, map[string]any{"name": "echo", "arguments": map[string]any{"text": "x"}}, params(t, sent[0]))
	require.Equal(t, map[string]any{
		"name": "echo", "arguments": map[string]any{"text": "x"}, "requestState": state,
		"inputResponses": map[string]any{
			"form": map[string]any{"action": "accept", "content": map[string]any{"name": "Ann"}},
			"go":   map[string]any{"action": "decline"},
		},
	}, params(t, sent[1]))
	require.Equal(t, map[string]any{
		"name": "echo", "arguments": map[string]any{"text": "x"},
		"inputResponses": map[string]any{"more": map[string]any{"action": "accept"}},
	}, params(t, sent[2]))
}

func TestInputIDsAreFresh(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true})
	s.answers(http.StatusOK, wants(`{}`, "wait"), wants(`{}`, "wait more"))
	_, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err, "a server that is busy gets its state back")
	sent := s.seen("tools/call")
	require.Len(t, sent, 3)
	require.Equal(t, "wait", params(t, sent[1])["requestState"])
	require.Equal(t, "wait more", params(t, sent[2])["requestState"])
	require.NotContains(t, params(t, sent[1]), "inputResponses")
	require.NotEqual(t, rpcID(sent[0]), rpcID(sent[1]))
	require.NotEqual(t, rpcID(sent[1]), rpcID(sent[2]))
}

func TestServerThatStaysBusy(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true})
	busy := wants(`{}`, "wait")
	s.answers(http.StatusOK, busy, busy, busy, busy, busy)
	_, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
	require.ErrorIs(t, err, tools.ErrNotExecuted)
	require.ErrorContains(t, err, "busy")
	require.Len(t, s.seen("tools/call"), 4)
}

func TestInputThatIsRefused(t *testing.T) {
	t.Parallel()
	many := func(entry string, n int) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	elicit := func(params string) string {
		return wants(`{"k":{"method":"elicitation/create","params":`+params+`}}`, "s")
	}
	at := func(url string) string {
		return visit(`[{"mode":"url","elicitationId":"e","url":"` + url + `","message":"m"}]`)
	}
	both := func(url string) []string {
		return []string{at(url), elicit(`{"mode":"url","message":"m","url":"` + url + `"}`)}
	}
	var nine []string
	for i := range 9 {
		nine = append(nine, fmt.Sprintf(`"k%d":{"method":"elicitation/create","params":{"message":"m"}}`, i))
	}
	for name, tt := range map[string]struct {
		answers []string
		says    string
	}{
		"no elicitations":   {[]string{visit(`[]`), `"error":{"code":-32042,"message":"m"}`, `"error":{"code":-32042,"message":"m","data":{"elicitations":"x"}}`}, "names none"},
		"no url":            {both(""), "it is missing"},
		"javascript":        {both("javascript:alert(1)"), `its scheme is "javascript", not https`},
		"data":              {both("data:text/html,x"), `its scheme is "data", not https`},
		"http":              {both("http://pay.example/x"), "its scheme is http, not https"},
		"loopback":          {both("http://127.0.0.1/x"), "its scheme is http, not https"},
		"no host":           {both("https:///x"), "has no host"},
		"user":              {both("https://bank.example@evil.example/"), "user information"},
		"unicode host":      {both("https://p\u0430ypal.example/"), "not written in ASCII"},
		"escaped host":      {both("https://bank%E2%80%AE.example/"), "not written in ASCII"},
		"other slash":       {both("https://bank.example\uff0f.evil.example/"), "not written in ASCII"},
		"right to left":     {both("https://x.example/\u202egnp.x"), "invisible characters"},
		"backslash":         {both(`https://evil.example\\@bank.example/`), "not valid"},
		"relative":          {both("/x"), `its scheme is ""`},
		"long":              {both("https://x.example/" + strings.Repeat("x", 5000)), "at most 4096"},
		"not valid":         {both("https://x.example/%zz"), "not valid"},
		"old form":          {[]string{visit(`[{"mode":"form","message":"m"}]`)}, `only "url" is possible`},
		"mode":              {[]string{elicit(`{"mode":"dance","message":"m"}`)}, `mode "dance"`},
		"too many":          {[]string{visit("[" + many(`{"mode":"url","elicitationId":"e","url":"https://x.example","message":"m"}`, 9) + "]"), wants("{"+strings.Join(nine, ",")+"}", "s")}, "at most 8"},
		"long message":      {[]string{elicit(`{"message":"` + strings.Repeat("m", 5000) + `"}`)}, "at most 4096"},
		"long key":          {[]string{wants(`{"`+strings.Repeat("k", 300)+`":{"method":"elicitation/create","params":{"message":"m"}}}`, "")}, "at most 256"},
		"long state":        {[]string{wants(`{}`, strings.Repeat("s", 70<<10))}, "at most 65536"},
		"nothing":           {[]string{wants(`{}`, "")}, "does not say which"},
		"sampling":          {[]string{wants(`{"k":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}`, "s")}, "sampling"},
		"roots":             {[]string{wants(`{"k":{"method":"roots/list","params":{}}}`, "s")}, "roots"},
		"unknown":           {[]string{wants(`{"k":{"method":"tasks/whatever","params":{}}}`, "s")}, "unknown kind"},
		"nested form":       {[]string{elicit(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`)}, `property "a"`},
		"list without end":  {[]string{elicit(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}}`)}, `property "a"`},
		"form is no object": {[]string{elicit(`{"message":"m","requestedSchema":{"type":"string"}}`), elicit(`{"message":"m","requestedSchema":[]}`)}, "object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, answer := range tt.answers {
				s := newServer(t, wire{modern: true})
				s.answers(http.StatusOK, answer)
				_, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
				var told *tools.Error
				require.ErrorAs(t, err, &told, answer)
				require.Contains(t, told.Message, tt.says)
				require.NotContains(t, told.Message, ".example")
			}
		})
	}
}

func TestLoopbackURLsAreForDevelopment(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{"http://127.0.0.1:1/x": true, "http://[::1]/": true, "http://localhost/": true, "http://pay.example": false, "http://127.0.0.1.example": false} {
		s := newServer(t, wire{modern: true})
		s.answers(http.StatusOK, visit(`[{"mode":"url","elicitationId":"e","url":"`+url+`"}]`))
		o := newOpener(t, func(c *mcp.Config) { c.AllowLoopback = true })
		_, err := open(t, o, definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
		var asked *tools.InputRequiredError
		require.Equal(t, ok, errors.As(err, &asked), url)
	}
}

func TestSecretsInInputs(t *testing.T) {
	t.Parallel()
	o := newOpener(t, func(c *mcp.Config) {
		c.Secrets = fixedSecret("static-secret")
	})
	with := func(d *agent.MCPToolset) {
		d.Headers = map[string]agent.SecretTemplate{"X-Key": "${env:TARRY_SECRET_KEY}"}
	}
	s := newServer(t, wire{modern: true})
	s.answers(http.StatusOK,
		visit(`[{"mode":"url","elicitationId":"e","url":"https://x.example","message":"key static-secret"}]`),
		visit(`[{"mode":"url","elicitationId":"e","url":"https://x.example?key=static-secret"}]`),
		wants(`{"k":{"method":"elicitation/create","params":{"message":"m"}}}`, "static-secret"),
	)
	ts := open(t, o, definition(s.URL, with), alice(), &broker{err: auth.ErrNoToken})
	_, err := ts.Call(t.Context(), echoCall("c", "x"))
	var asked *tools.InputRequiredError
	require.ErrorAs(t, err, &asked)
	require.Equal(t, "key [secret]", asked.Inputs[0].Message)
	for range 2 {
		_, err = ts.Call(t.Context(), echoCall("c", "x"))
		require.ErrorContains(t, err, "repeats a secret of the definition")
		require.NotContains(t, err.Error(), "static-secret")
	}
}

func TestAnswerWithAnUnknownAction(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true})
	ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
	for _, r := range []*tools.Resume{{Answers: map[string]tools.InputAnswer{"k": {Action: "shrug"}}}} {
		call := echoCall("c", "x")
		call.Resume = r
		_, err := ts.Call(t.Context(), call)
		var told *tools.Error
		require.ErrorAs(t, err, &told)
	}
	require.Empty(t, s.seen("tools/call"))
}
