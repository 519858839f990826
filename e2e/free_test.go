package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// freeServer is an MCP server that needs no login.
type freeServer struct {
	url   string
	calls atomic.Int64
}

func newFreeServer(tb testing.TB) *freeServer {
	tb.Helper()
	f := &freeServer{}
	server := mcp.NewServer(&mcp.Implementation{Name: "free", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "note", Description: "Takes a note."}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		f.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted"}}}, nil, nil
	})
	hs := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	tb.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	f.url = hs.URL
	return f
}

// modelCall is a line of the journal of scripted models.
type modelCall struct {
	Agent  string
	Turn   int
	Answer string
}

// modelCalls lists every call of the scripted model, over all processes.
func (w *world) modelCalls() (out []modelCall) {
	w.t.Helper()
	body, err := os.ReadFile(w.journal())
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w.t, err)
	for line := range strings.Lines(string(body)) {
		var c modelCall
		require.NoError(w.t, json.Unmarshal([]byte(line), &c))
		out = append(out, c)
	}
	return out
}

func (w *world) idle(r runHandle, answer string) {
	w.t.Helper()
	w.eventually("the run is not idle", func() bool {
		s := r.status()
		return s.State == "idle" && s.Answer == answer
	})
}

func (w *world) loginAs(link, user string) *demo.Page {
	w.t.Helper()
	page, err := demo.NewBrowser().Login(w.t.Context(), link, user, user+"-password")
	require.NoError(w.t, err)
	return page
}
