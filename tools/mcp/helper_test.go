package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/tools/mcp"
)

func TestMain(m *testing.M) {
	if os.Getenv("FAKE_STDIO_SERVER") != "" {
		serveStdio()
		return
	}
	goleak.VerifyTestMain(m)
}

// request is what a server saw.
type request struct {
	HTTP   string // method
	Method string // of JSON-RPC
	Auth   string
	Header http.Header
	Body   string
}

// server is an MCP server in front of which a test can put answers of its own.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	gate     func(w http.ResponseWriter, r *http.Request, q request) (handled bool)
	mcp      http.Handler
	canceled chan string
	entered  chan string
	over     chan struct{}
	release  func() // ends tools that wait
	all      []*sdk.Server
	conns    atomic.Int64
}

type echo struct {
	Text string `json:"text"`
}

type wire struct {
	// legacy servers do not know server/discover; modern ones refuse initialize.
	legacy, modern bool
	both           bool // without sessions, and either way
	json           bool
	sse            bool // the transport of 2024-11-05
}

func newServer(t *testing.T, w wire) *server {
	t.Helper()
	s := &server{canceled: make(chan string, 16), entered: make(chan string, 64), over: make(chan struct{})}
	s.release = sync.OnceFunc(func() { close(s.over) })
	s.restart(w)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = s.track
	s.Start()
	if w.sse {
		s.URL += "/sse" // definition knows it by that
	}
	t.Cleanup(func() {
		s.release()
		s.CloseClientConnections()
		s.Close()
		for _, srv := range s.all {
			for session := range srv.Sessions() {
				_ = session.Close()
			}
		}
	})
	return s
}

// track counts connections.
func (s *server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// restart forgets all sessions.
func (s *server) restart(w wire) {
	srv := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	sdk.AddTool(srv, &sdk.Tool{Name: "echo", Description: "Repeats.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *sdk.CallToolRequest, in echo) (*sdk.CallToolResult, any, error) {
			key, _ := req.Params.Meta["tarry/idempotencyKey"].(string)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text + "/" + key + "/" + s.auth(key)}}}, nil, nil
		})
	sdk.AddTool(srv, &sdk.Tool{Name: "structured"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, echo, error) {
		return nil, echo{Text: "x"}, nil
	})
	sdk.AddTool(srv, &sdk.Tool{Name: "failing"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("no such order")
	})
	sdk.AddTool(srv, &sdk.Tool{Name: "slow"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		key, _ := req.Params.Meta["tarry/idempotencyKey"].(string)
		s.entered <- key
		select {
		case <-ctx.Done():
			s.canceled <- key
		case <-s.over:
		}
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(srv, &sdk.Tool{Name: "work"}, work)
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, &sdk.StreamableHTTPOptions{Stateless: w.modern || w.both, JSONResponse: w.json, SessionTimeout: time.Minute, PropagateRequestCancellation: true})
	if w.sse {
		handler = sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return srv }, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, srv)
	s.mcp = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		q := peek(r)
		switch {
		case w.legacy && q.Method == "server/discover":
			http.Error(rw, "what?", http.StatusBadRequest)
		case w.modern && (q.Method == "initialize" || r.Method != http.MethodPost):
			http.Error(rw, "no initialize here", http.StatusBadRequest)
		default:
			handler.ServeHTTP(rw, r)
		}
	})
}

// work reports progress for longer than the read timeouts of tests.
func work(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := range 12 {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-tick.C:
		}
		// A server that answers in JSON cannot report it.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)})
	}
	return &sdk.CallToolResult{}, nil, nil
}

// auth is the authorization of the last request for the call with a key.
func (s *server) auth(key string) string {
	out := ""
	for _, q := range s.seen("tools/call") {
		if strings.Contains(q.Body, fmt.Sprintf(`"tarry/idempotencyKey":%q`, key)) {
			out = q.Auth
		}
	}
	return out
}

func peek(r *http.Request) request {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(body, &m)
	return request{HTTP: r.Method, Method: m.Method, Auth: r.Header.Get("Authorization"), Header: r.Header.Clone(), Body: string(body)}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := peek(r)
	s.mu.Lock()
	s.requests = append(s.requests, q)
	gate, next := s.gate, s.mcp
	s.mu.Unlock()
	if gate != nil && gate(w, r, q) {
		return
	}
	next.ServeHTTP(w, r)
}

func (s *server) guard(gate func(w http.ResponseWriter, r *http.Request, q request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = gate
}

// seen lists the requests of a JSON-RPC method, or of an HTTP method; all without one.
func (s *server) seen(method string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []request
	for _, q := range s.requests {
		if method == "" || q.Method == method || q.HTTP == method {
			out = append(out, q)
		}
	}
	return out
}

const challenge = `Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource", scope="read"`

// bearer admits only the tokens that ok says are good.
func bearer(ok func(token string) bool) func(http.ResponseWriter, *http.Request, request) bool {
	return func(w http.ResponseWriter, _ *http.Request, q request) bool {
		if ok(strings.TrimPrefix(q.Auth, "Bearer ")) {
			return false
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "BODY-OF-REFUSAL "+q.Auth, http.StatusUnauthorized)
		return true
	}
}

func only(good ...string) func(string) bool {
	return func(token string) bool {
		for _, g := range good {
			if g == token {
				return true
			}
		}
		return false
	}
}

// broker is a scripted auth.Broker.
type broker struct {
	mu         sync.Mutex
	token      auth.AccessToken
	err        error
	challenged func(b *broker, c auth.Challenge) error
	wants      []auth.Want
	challenges []auth.Challenge
}

func holding(token string, version int64) *broker {
	return &broker{token: auth.AccessToken{Access: auth.NewSecret(token), Version: version}}
}

func (b *broker) Token(_ context.Context, want auth.Want) (auth.AccessToken, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wants = append(b.wants, want)
	return b.token, b.err
}

func (b *broker) Challenged(_ context.Context, want auth.Want, c auth.Challenge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wants = append(b.wants, want)
	b.challenges = append(b.challenges, c)
	if b.challenged == nil {
		return &auth.RequiredError{Need: auth.Need{Key: "k", Slot: auth.Slot{Issuer: "https://as.example"}}}
	}
	return b.challenged(b, c)
}

func (b *broker) seen() []auth.Challenge {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]auth.Challenge{}, b.challenges...)
}

// sockets counts what the client side has open.
type sockets struct {
	open, dialed atomic.Int64
	idle         func() // closes those that nobody uses
}

type socket struct {
	net.Conn
	once sync.Once
	all  *sockets
}

func (s *socket) Close() error {
	s.once.Do(func() { s.all.open.Add(-1) })
	return s.Conn.Close()
}

func (s *sockets) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	s.dialed.Add(1)
	return &socket{Conn: c, all: s}, nil
}

func newOpener(t *testing.T, change ...func(*mcp.Config)) *mcp.Opener {
	t.Helper()
	o, _ := newCounted(t, change...)
	return o
}

func newCounted(t *testing.T, change ...func(*mcp.Config)) (*mcp.Opener, *sockets) {
	t.Helper()
	all := &sockets{}
	transport := &http.Transport{MaxIdleConnsPerHost: 8, DialContext: all.dial}
	all.idle = transport.CloseIdleConnections
	cfg := mcp.Config{HTTP: &http.Client{Transport: transport}, ConnectTimeout: 30 * time.Second}
	for _, c := range change {
		c(&cfg)
	}
	o, err := mcp.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, o.Close())
		transport.CloseIdleConnections()
	})
	return o, all
}

// fixedSecret resolves every reference to the same.
func fixedSecret(value string) func(context.Context, agent.Source) (auth.Secret, error) {
	return func(context.Context, agent.Source) (auth.Secret, error) { return auth.NewSecret(value), nil }
}

func alice() agent.Owner { return agent.Owner{App: "app", User: "alice"} }

func definition(url string, change ...func(*agent.MCPToolset)) *agent.MCPToolset {
	def := &agent.MCPToolset{Name: "orders", Transport: agent.TransportStreamableHTTP, URL: url}
	if strings.HasSuffix(url, "/sse") {
		def.Transport = agent.TransportSSE
	}
	for _, c := range change {
		c(def)
	}
	return def
}

func open(t *testing.T, o *mcp.Opener, def *agent.MCPToolset, owner agent.Owner, b *broker) tools.Toolset {
	t.Helper()
	var ab auth.Broker
	if b != nil {
		ab = b
	}
	ts, err := o.Open(t.Context(), def, owner, ab)
	require.NoError(t, err)
	return ts
}

func echoCall(id, text string) tools.Call {
	args, _ := json.Marshal(echo{Text: text})
	return tools.Call{ID: id, Name: "echo", Args: args}
}

func text(t *testing.T, res tools.Result) string {
	t.Helper()
	content, ok := res.Response["content"].([]any)
	require.True(t, ok)
	require.Len(t, content, 1)
	item, ok := content[0].(map[string]any)
	require.True(t, ok)
	out, ok := item["text"].(string)
	require.True(t, ok)
	return out
}

// wires are the protocol generations that a test runs against.
func wires() map[string]wire {
	return map[string]wire{
		"2025 stream": {legacy: true},
		"2025 json":   {legacy: true, json: true},
		"2026 stream": {modern: true},
		"2026 json":   {modern: true, json: true},
		"both":        {both: true},
		"sessions":    {},
		"sse":         {legacy: true, sse: true},
	}
}
