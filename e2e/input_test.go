package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// The address and state of a question may work like passwords: they carry the mark that no store, log or history may show.
const (
	payURL   = "https://pay.example/confirm?ticket=" + demo.DefaultMark
	payState = "state-" + demo.DefaultMark
)

// curiousServer is an MCP server whose tools want something of a person: "pay" in the older revision's way, "survey" in the
// newer one's.
type curiousServer struct {
	url string

	mu    sync.Mutex
	paid  bool
	calls map[string]int
	heard []*mcp.CallToolParamsRaw
}

func newCuriousServer(t *testing.T) *curiousServer {
	t.Helper()
	c := &curiousServer{calls: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	type none struct{}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls["pay"]++
		if c.paid {
			return text("paid"), nil, nil
		}
		data, err := json.Marshal(map[string]any{"elicitations": []any{map[string]any{"mode": "url", "elicitationId": "e1", "url": payURL, "message": "Pay, please"}}})
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, &jsonrpc.Error{Code: mcp.CodeURLElicitationRequired, Message: "URL elicitation required", Data: data}
	})
	mcp.AddTool(server, &mcp.Tool{Name: "survey"}, func(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls["survey"]++
		c.heard = append(c.heard, r.Params)
		if len(r.Params.InputResponses) == 0 {
			return &mcp.CallToolResult{RequestState: payState, InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{
				Message: "Who are you?", RequestedSchema: &jsonschema.Schema{Type: "object", Required: []string{"name"}, Properties: map[string]*jsonschema.Schema{
					"name": {Type: "string", MinLength: jsonschema.Ptr(2)}, "size": {Type: "string", Enum: []any{"s", "m"}},
				}},
			}}}, nil, nil
		}
		answer, _ := r.Params.InputResponses["who"].(*mcp.ElicitResult)
		if answer.Action != "accept" {
			return text("the person said " + answer.Action), nil, nil
		}
		return text("hello " + answer.Content["name"].(string)), nil, nil
	})
	// Stateless: with sessions go-sdk answers the newer revision's questions itself, over the older one's live stream.
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	hs := httptest.NewServer(handler)
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	c.url = hs.URL
	return c
}

func (c *curiousServer) count(tool string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[tool]
}

// asking is an app whose only tools are the curious server's.
func (c *curiousServer) asking(steps string) options {
	o := single(steps)
	o.agents["assistant/root_agent.yaml"] = strings.ReplaceAll(o.agents["assistant/root_agent.yaml"], "${var:MCP_URL}", c.url)
	return o
}

// answer opens the page of a question and sends its form.
func (w *world) answer(link, action string, fields map[string]string) *demo.Page {
	w.t.Helper()
	b := demo.NewBrowser()
	page, err := b.Open(w.t.Context(), link)
	require.NoError(w.t, err)
	require.Len(w.t, page.Forms, 1, page.Text)
	page, err = b.Submit(w.t.Context(), page, page.Forms[0], fields, page.Forms[0].Button(action))
	require.NoError(w.t, err)
	return page
}

// M34: error -32042 is a wait like that for a login: the person sees the address, everything may die meanwhile, and the
// same call is made again.
func TestURLElicitationOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	c := newCuriousServer(t)
	w := newWorld(t, c.asking(call("pay")+text("{{response.pay.content}}")))
	r := w.api.start("assistant", "Pay.")
	link := w.waiting(r)
	require.Equal(t, "waiting_input", r.status().State)
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	require.Equal(t, 1, c.count("pay"), "nothing runs while the person is away")

	page := w.page(link)
	require.Contains(t, page.Text, "It wants you to open an address at pay.example : "+payURL)
	require.Contains(t, page.Links, payURL)
	c.mu.Lock()
	c.paid = true
	c.mu.Unlock()
	require.Equal(t, "Thank you", w.answer(link, "accept", nil).Title)
	s := w.finished(r)
	require.Contains(t, s.Answer, "paid")
	require.Equal(t, 2, c.count("pay"))
	require.Equal(t, "Already answered", w.page(link).Title)
	w.keepsQuiet(r)
}

// M34: a person who declines the older revision's question is not asked again, and the call is not made again.
func TestURLElicitationDeclined(t *testing.T) {
	t.Parallel()
	c := newCuriousServer(t)
	w := newWorld(t, c.asking(call("pay")+text("{{response.pay.error}}")))
	r := w.api.start("assistant", "Pay.")
	require.Equal(t, "Declined", w.answer(w.waiting(r), "decline", nil).Title)
	s := w.finished(r)
	require.Contains(t, s.Answer, "The person did not do what the tool's server asked for")
	require.True(t, s.Denied)
	require.Equal(t, 1, c.count("pay"))
}

// M34: the newer revision's questions are a form; a wrong entry is shown again, the answer and the server's state go back
// with the same call. A refusal is an answer too.
func TestFormOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	c := newCuriousServer(t)
	w := newWorld(t, c.asking(call("survey")+text("{{response.survey.content}}")))
	r := w.api.start("assistant", "Ask.")
	link := w.waiting(r)
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	page := w.answer(link, "accept", map[string]string{"field-0-0": "B"})
	require.Equal(t, http.StatusUnprocessableEntity, page.Status)
	require.Contains(t, page.Text, "name: does not fit what the server allows")
	require.Equal(t, "Thank you", w.answer(link, "accept", map[string]string{"field-0-0": "Bo"}).Title)
	require.Contains(t, w.finished(r).Answer, "hello Bo")
	require.Equal(t, payState, c.heard[1].RequestState)
	require.Equal(t, c.heard[0].Arguments, c.heard[1].Arguments)
	w.keepsQuiet(r)

	r = w.api.start("assistant", "Ask again.")
	require.Equal(t, "Thank you", w.answer(w.waiting(r), "decline", nil).Title)
	require.Contains(t, w.finished(r).Answer, "the person said decline")
}

func (w *world) page(link string) *demo.Page {
	w.t.Helper()
	page, err := demo.NewBrowser().Open(w.t.Context(), link)
	require.NoError(w.t, err)
	return page
}

// keepsQuiet fails if the canary's mark stands in the run's history and events, or in any file: tables, logs, Temporal.
func (w *world) keepsQuiet(r runHandle) {
	w.t.Helper()
	kept := map[string][]byte{"history": r.history(), "events": (&recorder{http.DefaultTransport}).get(w.t, w.URL()+r.path("/events"))}
	maps.Copy(kept, w.stored())
	require.Greater(w.t, len(kept), 4)
	for where, body := range kept {
		require.False(w.t, bytes.Contains(body, []byte(demo.DefaultMark)), "the canary's mark stands in %s: …%s…", where, around(body, demo.DefaultMark))
	}
}
