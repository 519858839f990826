package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TokenIssuer is the authorization server of an MCP server, as far as that needs it. [Provider] is one.
type TokenIssuer interface {
	// Issuer is the issuer identifier.
	Issuer() string
	// Verify is false for an access token that is unknown, expired or revoked.
	Verify(token string) (Token, bool)
}

// MCPConfig describes an MCP server. Only Provider is needed.
type MCPConfig struct {
	// Provider issues the tokens.
	Provider TokenIssuer
	// URL is the base URL if the server is mounted in somebody else's; [MCPServer.Start] sets it otherwise.
	URL string
	// Path of the endpoint; empty means "/mcp".
	Path string
	// Stateless servers have no sessions; JSONResponse makes answers application/json instead of an event stream.
	Stateless, JSONResponse bool
	// ProtocolVersions narrows what the server speaks; empty means all that the SDK knows.
	ProtocolVersions []string
	// LeakTool adds the tool "leak", which returns the Authorization header it was called with, as a careless server
	// might.
	LeakTool bool
}

// MCPSwitches change how an MCP server answers; see [MCPServer.SetSwitches]. The zero value is a correct server.
type MCPSwitches struct {
	// Provider protects the server instead of the one that it began with.
	Provider TokenIssuer
	// OpenListing asks for a token for tools/call only.
	OpenListing bool
	// RejectTokens answers 401 to every token, valid or not.
	RejectTokens bool
	// CallStatus, if not 0, answers every authorized tools/call with this status before anything runs. A 403 of this
	// kind names no scope.
	CallStatus int
	// AnyAudience accepts tokens that were issued for another resource or for none.
	AnyAudience bool
	// NoMetadata serves no protected resource metadata; NoMetadataLink leaves it out of the challenge.
	NoMetadata, NoMetadataLink bool
	// NoScopeHint leaves the scope out of the 401 challenge.
	NoScopeHint bool
	// MetadataResource and AuthorizationServers replace what the metadata says.
	MetadataResource     string
	AuthorizationServers []string
}

// MCPServer is an OAuth-protected MCP server over streamable HTTP with the tools of a release planner. It records what
// it is asked to do. It is safe for concurrent use.
type MCPServer struct {
	cfg    MCPConfig
	listen listener

	mu       sync.Mutex
	url      string
	switches MCPSwitches
	server   *mcp.Server
	handler  http.Handler
	kill     func() // ends the tools of the current boot
	before   map[string]func(context.Context, ToolCall)
	after    map[string]func(context.Context, ToolCall)
	slow     *Gate
	calls    []ToolCall
	effects  []Effect
	requests []MCPRequest
}

// NewMCPServer returns a server that is not listening yet.
func NewMCPServer(cfg MCPConfig) (*MCPServer, error) {
	if cfg.Provider == nil {
		return nil, errors.New("an MCP server needs a provider")
	}
	if cfg.Path == "" {
		cfg.Path = "/mcp"
	}
	m := &MCPServer{
		cfg: cfg, url: strings.TrimSuffix(cfg.URL, "/"), slow: NewGate(),
		before: map[string]func(context.Context, ToolCall){}, after: map[string]func(context.Context, ToolCall){},
	}
	m.boot()
	return m, nil
}

// boot makes the MCP side afresh, as a new process would: sessions of before are unknown.
func (m *MCPServer) boot() {
	server := mcp.NewServer(&mcp.Implementation{Name: "release-planner", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions:              "Tickets and release plans of a made-up product.",
		SupportedProtocolVersions: m.cfg.ProtocolVersions,
		Capabilities:              &mcp.ServerCapabilities{},
	})
	life := make(chan struct{})
	m.addTools(life, server)
	plain := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: m.cfg.Stateless, JSONResponse: m.cfg.JSONResponse, PropagateRequestCancellation: true,
	})
	guarded := auth.RequireBearerToken(m.tokenInfo, nil)(plain)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource"+m.cfg.Path, m.resourceMetadata)
	mux.Handle(m.cfg.Path, m.protect(plain, guarded))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kill != nil {
		m.kill()
	}
	m.server, m.handler, m.kill = server, mux, sync.OnceFunc(func() { close(life) })
}

// Start listens on addr, which must be loopback; empty means the previous address or a free port. Sessions of before
// are gone; records, effects and switches stay.
func (m *MCPServer) Start(addr string) error {
	if m.listen.running() {
		return errors.New("MCP server is running")
	}
	m.boot()
	url, err := m.listen.start(addr, m)
	if err != nil {
		return fmt.Errorf("start MCP server: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.url = url
	return nil
}

// Close drops the port, all connections, all sessions, and the calls that run, as a killed process would: one that is
// held before its effect has none. The server can be started again.
func (m *MCPServer) Close() error {
	err := m.listen.close()
	m.mu.Lock()
	server, kill := m.server, m.kill
	m.mu.Unlock()
	kill() // before the sessions are closed, which waits for their calls
	for session := range server.Sessions() {
		_ = session.Close() // its connection is gone already
	}
	return err
}

// URL is the MCP endpoint, which is also the resource identifier; only the path before Start.
func (m *MCPServer) URL() string { return m.base() + m.cfg.Path }

// MetadataURL is where the protected resource metadata is.
func (m *MCPServer) MetadataURL() string {
	return m.base() + "/.well-known/oauth-protected-resource" + m.cfg.Path
}

func (m *MCPServer) base() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.url
}

// Switches returns the current switches.
func (m *MCPServer) Switches() MCPSwitches {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.switches
	s.AuthorizationServers = slices.Clone(s.AuthorizationServers)
	return s
}

// SetSwitches changes the switches; requests that arrive afterwards see the change. change must not call the server.
func (m *MCPServer) SetSwitches(change func(*MCPSwitches)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.switches)
}

// ServeHTTP implements http.Handler.
func (m *MCPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	h := m.handler
	m.mu.Unlock()
	h.ServeHTTP(w, r)
}
