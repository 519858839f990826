//go:build adkweb

package adkweb_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rooms is an MCP server that asks for no login.
type rooms struct {
	url    string
	booked atomic.Int64
}

func newRooms(t *testing.T) *rooms {
	t.Helper()
	r := &rooms{}
	server := mcp.NewServer(&mcp.Implementation{Name: "rooms", Version: "1.0.0"}, nil)
	type room struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "book_room", Description: "Books a room."}, func(_ context.Context, _ *mcp.CallToolRequest, in room) (*mcp.CallToolResult, map[string]any, error) {
		r.booked.Add(1)
		return nil, map[string]any{"booked": in.Name}, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}
