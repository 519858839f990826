package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"tarry/internal/demo"
	"tarry/internal/safehttp"
)

func newMCP(t *testing.T, cfg demo.MCPConfig) (*demo.Provider, *demo.MCPServer) {
	t.Helper()
	p := newProvider(t, demo.ProviderConfig{})
	cfg.Provider = p
	m, err := demo.NewMCPServer(cfg)
	require.NoError(t, err)
	require.NoError(t, m.Start(""))
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return p, m
}

// bearer sends one token with every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		(&oauth2.Token{AccessToken: b.token}).SetAuthHeader(r)
	}
	return b.next.RoundTrip(r)
}

func connect(t *testing.T, m *demo.MCPServer, token string) (*mcp.ClientSession, error) {
	t.Helper()
	guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
	t.Cleanup(guarded.CloseIdleConnections)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:             m.URL(),
		HTTPClient:           &http.Client{Transport: bearer{token, guarded.Transport()}, CheckRedirect: guarded.CheckRedirect},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
	}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func call(ctx context.Context, s *mcp.ClientSession, tool string, args map[string]any, key string) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if key != "" {
		params.Meta = mcp.Meta{demo.IdempotencyMeta: key}
	}
	return s.CallTool(ctx, params)
}

func TestMCPTools(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]demo.MCPConfig{
		"sessions":  {LeakTool: true},
		"stateless": {LeakTool: true, Stateless: true},
		"JSON":      {LeakTool: true, Stateless: true, JSONResponse: true},
		"2025":      {LeakTool: true, ProtocolVersions: []string{"2025-11-25"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, m := newMCP(t, cfg)
			token := p.Issue("alice", m.URL(), 0, demo.ScopeRead, demo.ScopeWrite)
			s, err := connect(t, m, token)
			require.NoError(t, err)

			list, err := s.ListTools(t.Context(), nil)
			require.NoError(t, err)
			hints := map[string]bool{}
			for _, tool := range list.Tools {
				hints[tool.Name] = tool.Annotations.ReadOnlyHint
			}
			require.Equal(t, map[string]bool{
				"list_tickets": true, "get_ticket": true, "create_plan": false, "add_comment": false, "publish_plan": false,
				"whoami": true, "slow": true, "big": true, "fail": true, "leak": true,
			}, hints)

			res, err := call(t.Context(), s, "list_tickets", map[string]any{"status": "open"}, "")
			require.NoError(t, err)
			require.False(t, res.IsError)
			require.Contains(t, textOf(t, res), "REL-101")
			require.NotContains(t, textOf(t, res), "REL-102")

			res, err = call(t.Context(), s, "create_plan", map[string]any{"title": "Autumn", "tickets": []string{"REL-101"}}, "key-1")
			require.NoError(t, err)
			require.Contains(t, textOf(t, res), "plan-1")
			require.Equal(t, []demo.Effect{{Kind: "plan", ID: "plan-1", Text: "Autumn: REL-101", User: "alice", IdempotencyKey: "key-1"}}, m.Effects())
			calls := m.Calls("create_plan")
			require.Len(t, calls, 1)
			require.Equal(t, "alice", calls[0].User)
			require.Equal(t, "key-1", calls[0].IdempotencyKey)
			require.JSONEq(t, `{"title":"Autumn","tickets":["REL-101"]}`, string(calls[0].Arguments))

			res, err = call(t.Context(), s, "whoami", nil, "")
			require.NoError(t, err)
			require.Contains(t, textOf(t, res), `"user":"alice"`)
			res, err = call(t.Context(), s, "leak", nil, "")
			require.NoError(t, err)
			require.Contains(t, textOf(t, res), token)
			res, err = call(t.Context(), s, "fail", nil, "")
			require.NoError(t, err)
			require.True(t, res.IsError)
			res, err = call(t.Context(), s, "big", map[string]any{"kb": 300}, "")
			require.NoError(t, err)
			require.Greater(t, len(textOf(t, res)), 300<<10)
			require.Len(t, m.Calls(""), 6)
		})
	}
}

func textOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	require.NotEmpty(t, res.Content)
	content, ok := res.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	return content.Text
}

func rpc(t *testing.T, a *app, m *demo.MCPServer, token, method string, params any) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL(), bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		(&oauth2.Token{AccessToken: token}).SetAuthHeader(req)
	}
	return a.do(req)
}

func TestMCPChallenges(t *testing.T) {
	t.Parallel()
	p, m := newMCP(t, demo.MCPConfig{})
	a := newApp(t, p, demo.AuthNone)
	reader := p.Issue("alice", m.URL(), 0, demo.ScopeRead)
	elsewhere := p.Issue("alice", resource, 0, demo.ScopeRead)
	revoked := p.Issue("alice", m.URL(), -1, demo.ScopeRead)
	base := "tickets:read tickets:write"
	tests := map[string]struct {
		token, method, tool, code, scope string
		status                           int
	}{
		"no token":        {"", "tools/list", "", "", base, http.StatusUnauthorized},
		"unknown token":   {"x", "tools/list", "", "invalid_token", base, http.StatusUnauthorized},
		"expired token":   {revoked, "tools/list", "", "invalid_token", base, http.StatusUnauthorized},
		"wrong audience":  {elsewhere, "tools/list", "", "invalid_token", base, http.StatusUnauthorized},
		"narrow for call": {reader, "tools/call", "create_plan", "insufficient_scope", base, http.StatusForbidden},
		"step-up":         {reader, "tools/call", "publish_plan", "insufficient_scope", base + " plans:publish", http.StatusForbidden},
	}
	for name, tt := range tests {
		got := rpc(t, a, m, tt.token, tt.method, map[string]any{"name": tt.tool})
		require.Equal(t, tt.status, got.status, name)
		challenges, err := oauthex.ParseWWWAuthenticate(got.header.Values("WWW-Authenticate"))
		require.NoError(t, err, name)
		require.Len(t, challenges, 1, name)
		require.Equal(t, "bearer", challenges[0].Scheme)
		require.Equal(t, m.MetadataURL(), challenges[0].Params["resource_metadata"], name)
		require.Equal(t, tt.code, challenges[0].Params["error"], name)
		require.Equal(t, tt.scope, challenges[0].Params["scope"], name)
	}
	require.Empty(t, m.Calls(""), "nothing ran")
	require.Len(t, m.Requests(), len(tests))

	doc, err := oauthex.GetProtectedResourceMetadata(t.Context(), m.MetadataURL(), m.URL(), a.http.HTTP())
	require.NoError(t, err)
	require.Equal(t, []string{p.Issuer()}, doc.AuthorizationServers)
	require.Equal(t, m.URL(), doc.Resource)
	meta, err := oauthex.GetAuthServerMeta(t.Context(), p.URL()+"/.well-known/oauth-authorization-server", p.Issuer(), a.http.HTTP())
	require.NoError(t, err)
	require.Equal(t, p.TokenURL(), meta.TokenEndpoint)
}

func TestMCPSwitches(t *testing.T) {
	t.Parallel()
	p, m := newMCP(t, demo.MCPConfig{})
	token := p.Issue("alice", m.URL(), 0, demo.ScopeRead)
	m.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = true })
	anonymous, err := connect(t, m, "")
	require.NoError(t, err)
	_, err = anonymous.ListTools(t.Context(), nil)
	require.NoError(t, err)
	_, err = call(t.Context(), anonymous, "whoami", nil, "")
	require.Error(t, err)
	require.Empty(t, m.Calls(""))

	a := newApp(t, p, demo.AuthNone)
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		m.SetSwitches(func(s *demo.MCPSwitches) { s.CallStatus = status })
		got := rpc(t, a, m, token, "tools/call", map[string]any{"name": "whoami"})
		require.Equal(t, status, got.status)
		require.Empty(t, got.header.Get("WWW-Authenticate"))
	}
	m.SetSwitches(func(s *demo.MCPSwitches) {
		*s = demo.MCPSwitches{RejectTokens: true, NoMetadataLink: true, NoScopeHint: true}
	})
	got := rpc(t, a, m, token, "tools/list", nil)
	require.Equal(t, `Bearer error="invalid_token"`, got.header.Get("WWW-Authenticate"))
	m.SetSwitches(func(s *demo.MCPSwitches) {
		*s = demo.MCPSwitches{MetadataResource: "https://evil.example", AuthorizationServers: []string{"https://as.example"}}
	})
	require.Equal(t, "https://evil.example", a.get(m.MetadataURL()).fields["resource"])
	m.SetSwitches(func(s *demo.MCPSwitches) { s.NoMetadata = true })
	require.Equal(t, http.StatusNotFound, a.get(m.MetadataURL()).status)
}

func TestMCPGatesAndRestart(t *testing.T) {
	t.Parallel()
	p, m := newMCP(t, demo.MCPConfig{})
	token := p.Issue("alice", m.URL(), 0, demo.ScopeRead, demo.ScopeWrite)
	s, err := connect(t, m, token)
	require.NoError(t, err)
	done := make(chan error, 1)
	comment := func(s *mcp.ClientSession, key string) {
		_, err := call(t.Context(), s, "add_comment", map[string]any{"ticket": "REL-101", "text": "x"}, key)
		done <- err
	}

	gate := m.HoldBefore("add_comment")
	go comment(s, "k1")
	<-gate.Arrived()
	require.Empty(t, m.Effects())
	require.False(t, m.Calls("add_comment")[0].Done)
	gate.Open()
	require.NoError(t, <-done)
	require.Len(t, m.Effects(), 1)
	require.True(t, m.Calls("add_comment")[0].Done)

	// Killed between effect and answer.
	m.SetBefore("add_comment", nil)
	gate = m.HoldAfter("add_comment")
	go comment(s, "k2")
	<-gate.Arrived()
	require.Len(t, m.Effects(), 2)
	url := m.URL()
	require.NoError(t, m.Close())
	require.Error(t, <-done)
	m.SetAfter("add_comment", nil)
	require.NoError(t, m.Start(""))
	require.Equal(t, url, m.URL())

	again, err := connect(t, m, token)
	require.NoError(t, err)
	go func() {
		_, err := call(t.Context(), again, "slow", nil, "")
		done <- err
	}()
	<-m.Slow().Arrived()
	m.Slow().Open()
	require.NoError(t, <-done)
	comment(again, "k2")
	require.NoError(t, <-done)
	effects := m.Effects()
	require.Len(t, effects, 3)
	require.Equal(t, effects[1].IdempotencyKey, effects[2].IdempotencyKey, "a repeated call shows by its key")
}
