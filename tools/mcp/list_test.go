package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/tools"
)

// serve serves tools that do nothing, a few on each page.
func serve(t *testing.T, handler sdk.ToolHandler, all ...*sdk.Tool) string {
	t.Helper()
	srv := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, &sdk.ServerOptions{PageSize: 100})
	for _, tool := range all {
		if tool.InputSchema == nil {
			tool.InputSchema = map[string]any{"type": "object"}
		}
		srv.AddTool(tool, handler)
	}
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(s.Close)
	return s.URL
}

func nothing(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{}, nil
}

func numbered(n int, description string) []*sdk.Tool {
	var out []*sdk.Tool
	for i := range n {
		out = append(out, &sdk.Tool{Name: fmt.Sprintf("tool_%03d", i), Description: description})
	}
	return out
}

func TestListing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tools  []*sdk.Tool
		filter []string
		want   int
		says   string
	}{
		"several pages":       {tools: numbered(250, ""), want: 250},
		"too many":            {tools: numbered(513, ""), says: "tool_filter"},
		"too many, filtered":  {tools: numbered(600, ""), filter: []string{"tool_007", "tool_599"}, want: 2},
		"too large":           {tools: numbered(300, strings.Repeat("x", 4096)), says: "tool_filter"},
		"long description":    {tools: numbered(1, strings.Repeat("ü", 5000)), want: 1},
		"reserved names":      {tools: append(numbered(1, ""), &sdk.Tool{Name: "adk_request_credential"}, &sdk.Tool{Name: "transfer_to_agent"}), want: 1},
		"names after a dot":   {tools: append(numbered(1, ""), &sdk.Tool{Name: "x.adk_request_credential"}, &sdk.Tool{Name: "x.exit_loop"}, &sdk.Tool{Name: "exit_loop"}), want: 1},
		"names of other kind": {tools: append(numbered(1, ""), &sdk.Tool{Name: "a b"}, &sdk.Tool{Name: strings.Repeat("n", 200)}), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, nothing, tt.tools...)
			list, err := open(t, newOpener(t), definition(url, func(d *agent.MCPToolset) { d.Filter = tt.filter }), alice(), nil).List(t.Context())
			if tt.says != "" {
				var told *tools.Error
				require.ErrorAs(t, err, &told)
				require.Contains(t, told.Message, tt.says)
				return
			}
			require.NoError(t, err)
			require.Len(t, list, tt.want)
			require.True(t, slices.IsSortedFunc(list, func(a, b tools.Declaration) int { return strings.Compare(a.Name, b.Name) }))
			for _, d := range list {
				require.LessOrEqual(t, len(d.Description), 4<<10)
			}
		})
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	url := serve(t, nothing,
		&sdk.Tool{Name: "a_reads", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		&sdk.Tool{Name: "b_sets", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}},
		&sdk.Tool{Name: "c_adds", Annotations: &sdk.ToolAnnotations{}},
		&sdk.Tool{Name: "d_says_nothing"},
	)
	list, err := open(t, newOpener(t), definition(url), alice(), nil).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 4)
	for i, want := range []bool{true, true, false, false} {
		require.Equal(t, want, list[i].Idempotent, list[i].Name)
	}
}

// A tool of the 2026 protocol may want arguments in headers, which only a listing tells.
func TestArgumentsInHeaders(t *testing.T) {
	t.Parallel()
	url := serve(t, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: req.Extra.Header.Get("Mcp-Param-Region")}}}, nil
	}, &sdk.Tool{Name: "echo", InputSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"text": map[string]any{"type": "string", "x-mcp-header": "Region"}},
	}})
	res, err := open(t, newOpener(t), definition(url), alice(), nil).Call(t.Context(), echoCall("c", "eu"))
	require.NoError(t, err)
	require.Equal(t, "eu", text(t, res))
}
