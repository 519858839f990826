package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// KeyConfig says how a [KeyServer] wants its key; one of In and Scheme is set.
type KeyConfig struct {
	// In is "header", "query" or "cookie", Name what it is called there.
	In, Name string
	// Scheme is "basic" or "bearer".
	Scheme string
}

// KeyRequest is one request to a [KeyServer], with what it carried in the place of a key.
type KeyRequest struct {
	User, Secret string
	Status       int
}

// KeyServer is an MCP server over streamable HTTP that wants a key, a user name with a password or a bearer token. It is careless
// with them: a refusal repeats what was sent, and so does its tool "leak". Safe for concurrent use.
type KeyServer struct {
	cfg    KeyConfig
	listen listener
	mcp    http.Handler

	mu       sync.Mutex
	url      string
	accepted map[string]string // secret → user
	redirect string
	requests []KeyRequest
}

// NewKeyServer returns a server that accepts no key yet and is not listening.
func NewKeyServer(cfg KeyConfig) *KeyServer {
	s := &KeyServer{cfg: cfg, accepted: map[string]string{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "key-server", Version: "1.0.0"}, nil)
	type none struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says whose key it was called with.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			return say("you are " + s.owner(req.Extra.Header.Get(carriedUser), req.Extra.Header.Get(carriedSecret))), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "leak", Description: "Repeats what it was sent.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			h := req.Extra.Header
			return say(fmt.Sprintf("%s %s %s %s", h.Get(carriedSecret), h.Get("Authorization"), h.Get("Cookie"), h.Get(carriedURL))), nil, nil
		})
	s.mcp = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return s
}

// Headers by which the tools learn what their request carried.
const (
	carriedUser   = "X-Carried-User"
	carriedSecret = "X-Carried-Secret"
	carriedURL    = "X-Carried-Url"
)

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// Accept makes secret a key of user, and the only one.
func (s *KeyServer) Accept(user, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = map[string]string{secret: user}
}

// Add makes secret one more key.
func (s *KeyServer) Add(user, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[secret] = user
}

// Redirect makes every answer a redirect to an address; empty ends that.
func (s *KeyServer) Redirect(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirect = to
}

// Requests lists what came, the oldest first.
func (s *KeyServer) Requests() []KeyRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Start listens on addr, which must be loopback; empty means the previous address or a free port.
func (s *KeyServer) Start(addr string) error {
	if s.listen.running() {
		return errors.New("key server is running")
	}
	url, err := s.listen.start(addr, s)
	if err != nil {
		return fmt.Errorf("start key server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url = url
	return nil
}

// Close drops the port and all connections.
func (s *KeyServer) Close() error { return s.listen.close() }

// URL is the MCP endpoint.
func (s *KeyServer) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url + "/mcp"
}

// owner is whose key it is, or nobody's.
func (s *KeyServer) owner(user, secret string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, ok := s.accepted[secret]
	if !ok || s.cfg.Scheme == "basic" && user != owner {
		return ""
	}
	return owner
}

// carried is what a request has in the place of a key.
func (s *KeyServer) carried(r *http.Request) (user, secret string) {
	switch {
	case s.cfg.Scheme == "basic":
		user, secret, _ = r.BasicAuth()
	case s.cfg.Scheme == "bearer":
		secret = bearerToken(r)
	case s.cfg.In == "header":
		secret = r.Header.Get(s.cfg.Name)
	case s.cfg.In == "query":
		secret = r.URL.Query().Get(s.cfg.Name)
	case s.cfg.In == "cookie":
		if c, err := r.Cookie(s.cfg.Name); err == nil {
			secret = c.Value
		}
	}
	return user, secret
}

// ServeHTTP implements [http.Handler].
func (s *KeyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, secret := s.carried(r)
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, KeyRequest{User: user, Secret: secret, Status: rec.status})
	}()
	s.mu.Lock()
	redirect := s.redirect
	s.mu.Unlock()
	switch {
	case redirect != "":
		http.Redirect(rec, r, redirect+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect) //nolint:gosec // what a careless server does
	case s.owner(user, secret) == "":
		if s.cfg.Scheme != "" {
			rec.Header().Set("WWW-Authenticate", s.cfg.Scheme+` realm="`+secret+`"`)
		}
		http.Error(rec, "not accepted: "+secret, http.StatusUnauthorized)
	default:
		r.Header.Set(carriedUser, user)
		r.Header.Set(carriedSecret, secret)
		r.Header.Set(carriedURL, r.URL.String())
		s.mcp.ServeHTTP(rec, r)
	}
}
