package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/tools"
)

const (
	// preset is SEP-1034's form and SEP-1330's choices: every kind of field has a default.
	preset = `{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},
		"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","pending"],"default":"pending"},
		"titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"b"},
		"verified":{"type":"boolean","default":false},
		"several":{"type":"array","items":{"type":"string","enum":["x","y"]},"default":["x","y"]},
		"more":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"}]},"default":["p"]},
		"free":{"type":"string"}},
		"required":["name","age","verified"]}`
	presetContent = `{"name":"John Doe","age":30,"score":95.5,"status":"pending","titled":"b","verified":false,"several":["x","y"],"more":["p"]}`
)

// newAsking serves a tool that asks within the call, as servers of the old revision do, and tells the answer.
func newAsking(t *testing.T, w wire, ask *sdk.ElicitParams) *server {
	t.Helper()
	s := newServer(t, w)
	for _, srv := range s.all {
		sdk.AddTool(srv, &sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			res, err := req.Session.Elicit(ctx, ask)
			if err != nil {
				return nil, nil, err
			}
			raw, err := json.Marshal(res)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(raw)}}}, nil, err
		})
	}
	return s
}

func acceptDefaults(d *agent.MCPToolset) { d.AcceptDefaults = true }

func TestLiveQuestions(t *testing.T) {
	t.Parallel()
	form := func(schema string) *sdk.ElicitParams {
		return &sdk.ElicitParams{Mode: "form", Message: "m", RequestedSchema: json.RawMessage(schema)}
	}
	url := &sdk.ElicitParams{Mode: "url", Message: "m", URL: "https://x.example/SECRET-OF-URL", ElicitationID: "e"}
	for name, tt := range map[string]struct {
		ask    *sdk.ElicitParams
		accept bool
		want   string
	}{
		"defaults":          {form(preset), true, `{"action":"accept","content":` + presetContent + `}`},
		"no fields":         {form(`{"type":"object","properties":{}}`), true, `{"action":"accept"}`},
		"required":          {form(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}},"required":["a"]}`), true, `{"action":"decline"}`},
		"URL with defaults": {url, true, `{"action":"cancel"}`},
		"URL":               {url, false, `{"action":"cancel"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAsking(t, wire{legacy: true}, tt.ask)
			var logged bytes.Buffer
			o := newOpener(t, logging(&logged))
			ts := open(t, o, definition(s.URL, func(d *agent.MCPToolset) { d.AcceptDefaults = tt.accept }), alice(), nil)
			res, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "ask"})
			require.NoError(t, err)
			require.JSONEq(t, tt.want, text(t, res))
			require.Contains(t, logged.String(), "level=INFO")
			require.Contains(t, logged.String(), `toolset=orders tools=[ask]`)
			require.NotContains(t, logged.String(), "SECRET")
			require.NotContains(t, logged.String(), "John")
		})
	}
}

// Some servers ask on the stream that belongs to no call. Its end, or that there is none, must not end the session.
func TestQuestionOnTheStandingStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	gets := make(chan http.ResponseWriter)
	answers := make(chan string, 8)
	s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case gets <- w:
				<-gets // the test is done with it
			case <-r.Context().Done():
			case <-s.over:
			}
		case r.Method == http.MethodPost && q.Method == "" && strings.Contains(q.Body, `"result"`):
			answers <- q.Body
			w.WriteHeader(http.StatusAccepted)
		default:
			return false
		}
		return true
	})
	ts := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), nil)
	for i := range 3 {
		_, err := ts.Call(t.Context(), echoCall("c", "x"))
		require.NoError(t, err)
		w := <-gets
		fmt.Fprintf(w, "id: e%d\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"m\",\"requestedSchema\":%s}}\n\ndata: {cut off", i, i, strings.ReplaceAll(preset, "\n", ""))
		require.NoError(t, http.NewResponseController(w).Flush())
		require.Contains(t, <-answers, `"action":"accept"`)
		gets <- nil // the server ends the stream
	}
	require.Len(t, s.seen("initialize"), 1, "the session goes on")
	require.Empty(t, s.seen(http.MethodGet)[0].Header.Get("Last-Event-ID"))
	require.Equal(t, "e0", s.seen(http.MethodGet)[1].Header.Get("Last-Event-ID"))
}

// A schema that refers to itself would end the process of whoever checks defaults by all of JSON Schema's rules.
func TestLiveFormThatRefersToItself(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	answers := make(chan string, 8)
	s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":`+
				`{"type":"object","properties":{"a":{"type":"string","$ref":"#/properties/a","default":"x"}}}}}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-s.over:
			}
		case r.Method == http.MethodPost && q.Method == "":
			answers <- q.Body
			w.WriteHeader(http.StatusAccepted)
		default:
			return false
		}
		return true
	})
	ts := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), nil)
	_, err := ts.Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Contains(t, <-answers, `"content":{"a":"x"}`)
}

func TestServerWithoutAStandingStream(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusUnauthorized, http.StatusInternalServerError, 0} {
		s := newServer(t, wire{legacy: true})
		s.guard(func(w http.ResponseWriter, r *http.Request, _ request) bool {
			if r.Method == http.MethodGet && status == 0 {
				<-r.Context().Done() // not even headers
			} else if r.Method == http.MethodGet {
				http.Error(w, "no", status)
			}
			return r.Method == http.MethodGet
		})
		ts := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), holding("T1", 1))
		for range 3 {
			_, err := ts.Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { return len(s.seen(http.MethodGet)) > 0 }, 5*time.Second, time.Millisecond)
		require.Len(t, s.seen("initialize"), 1)
		require.Equal(t, "Bearer T1", s.seen(http.MethodGet)[0].Auth)
	}
}

// A form is offered to servers of the old revision only where defaults answer it.
func TestLiveFormWithoutDefaults(t *testing.T) {
	t.Parallel()
	s := newAsking(t, wire{legacy: true}, &sdk.ElicitParams{Message: "m", RequestedSchema: json.RawMessage(preset)})
	res, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), tools.Call{ID: "c", Name: "ask"})
	require.NoError(t, err)
	require.Equal(t, true, res.Response["isError"])
	require.Contains(t, text(t, res), "does not support")
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	both := map[string]any{"form": map[string]any{}, "url": map[string]any{}}
	for name, tt := range map[string]struct {
		accept bool
		old    map[string]any
	}{"person": {false, map[string]any{"url": map[string]any{}}}, "defaults": {true, both}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(d *agent.MCPToolset) { d.AcceptDefaults = tt.accept }
			s := newServer(t, wire{legacy: true})
			_, err := open(t, newOpener(t), definition(s.URL, with), alice(), nil).List(t.Context())
			require.NoError(t, err)
			got, _ := params(t, s.seen("initialize")[0])["capabilities"].(map[string]any)
			require.Equal(t, map[string]any{"elicitation": tt.old}, got)

			s = newServer(t, wire{modern: true})
			ts := open(t, newOpener(t), definition(s.URL, with), alice(), nil)
			_, err = ts.List(t.Context())
			require.NoError(t, err)
			_, err = ts.Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
			for _, method := range []string{"server/discover", "tools/list", "tools/call"} {
				require.Len(t, s.seen(method), 1)
				require.Equal(t, map[string]any{"elicitation": both}, meta(t, s.seen(method)[0])["io.modelcontextprotocol/clientCapabilities"])
			}
			require.Empty(t, s.seen("initialize"))
		})
	}
}

func TestDefaultsOfTheNewRevision(t *testing.T) {
	t.Parallel()
	ask := func(key, schema string) string {
		return `"` + key + `":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":` + schema + `}}`
	}
	const needs = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	s := newServer(t, wire{modern: true})
	s.answers(http.StatusOK,
		wants("{"+ask("a", preset)+"}", "s1"),
		wants("{"+ask("a2", preset)+","+ask("b", needs)+`,"go":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example"}}}`, "s2"),
	)
	ts := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), nil)
	call := echoCall("c", "x")
	_, err := ts.Call(t.Context(), call)
	var asked *tools.InputRequiredError
	require.ErrorAs(t, err, &asked)
	require.Len(t, asked.Inputs, 2, "nobody is asked for what has defaults")
	require.Equal(t, "b", asked.Inputs[0].Key)
	require.Equal(t, "go", asked.Inputs[1].Key)
	require.Len(t, asked.Answers, 1)

	ann := tools.InputAnswer{Action: tools.InputAccept, Content: map[string]any{"name": "Ann"}}
	call.Resume = &tools.Resume{State: asked.State, Answers: map[string]tools.InputAnswer{
		"a2": asked.Answers["a2"], "b": ann, "go": {Action: tools.InputAccept},
	}}
	_, err = ts.Call(t.Context(), call)
	require.NoError(t, err)
	sent := s.seen("tools/call")
	require.Len(t, sent, 3)
	var content map[string]any
	require.NoError(t, json.Unmarshal([]byte(presetContent), &content))
	filled := map[string]any{"action": "accept", "content": content}
	require.Equal(t, map[string]any{"a": filled}, params(t, sent[1])["inputResponses"])
	require.Equal(t, "s1", params(t, sent[1])["requestState"])
	require.Equal(t, map[string]any{
		"a2": filled, "b": map[string]any{"action": "accept", "content": map[string]any{"name": "Ann"}}, "go": map[string]any{"action": "accept"},
	}, params(t, sent[2])["inputResponses"])
	require.Equal(t, "s2", params(t, sent[2])["requestState"])
}

// Some servers ask within the repeated call for what the person was shown already: that URL is accepted, and no other.
func TestVisitedURLIsAcceptedWithinTheCall(t *testing.T) {
	t.Parallel()
	const url = "https://x.example/visit"
	s := newAsking(t, wire{legacy: true}, &sdk.ElicitParams{Mode: "url", Message: "m", URL: url, ElicitationID: "e"})
	ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
	for visited, want := range map[string]string{url: `{"action":"accept"}`, "https://x.example/other": `{"action":"cancel"}`} {
		res, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "ask", Resume: &tools.Resume{Visited: []string{visited}}})
		require.NoError(t, err)
		require.JSONEq(t, want, text(t, res))
	}
	res, err := ts.Call(t.Context(), tools.Call{ID: "d", Name: "ask"})
	require.NoError(t, err)
	require.JSONEq(t, `{"action":"cancel"}`, text(t, res), "and in that call alone")
}

func TestDefaultsThatTheirSchemaForbids(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`{"type":"string","default":1}`, `{"type":"string","enum":["a"],"default":"b"}`, `{"type":"integer","default":1.5}`,
		`{"type":"boolean","default":"true"}`, `{"type":"number","default":null}`,
		`{"type":"array","items":{"enum":["a"]},"default":["a","b"]}`, `{"type":"array","items":{"enum":["a"]},"default":"a"}`,
	} {
		s := newServer(t, wire{modern: true})
		s.answers(http.StatusOK, wants(`{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"f":`+field+`},"required":["f"]}}}}`, "s"))
		_, err := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), nil).Call(t.Context(), echoCall("c", "x"))
		var asked *tools.InputRequiredError
		require.ErrorAs(t, err, &asked, field)
	}
}

func TestServerThatIsNeverContent(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true})
	s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
		if q.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + rpcID(q) + `,` + wants(`{"k":{"method":"elicitation/create","params":{"message":"m"}}}`, "s") + `}`))
		return true
	})
	_, err := open(t, newOpener(t), definition(s.URL, acceptDefaults), alice(), nil).Call(t.Context(), echoCall("c", "x"))
	var told *tools.Error
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Message, "went on asking")
	require.Len(t, s.seen("tools/call"), 8)
}
