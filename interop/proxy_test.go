//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// protection stands before an MCP server that knows no logins: RFC 9728 metadata, 401 and 403 with a challenge, and
// tokens of an authorization server that were issued for it and no other. The server never sees a token.
type protection struct {
	*httptest.Server
	as   *authorizationServer
	path string

	mu       sync.Mutex
	requests []request
	// tokens are the ids of those that came; true if they are withdrawn, which resource servers hear of in their own ways.
	tokens map[string]bool
	// gates hold calls of a tool.
	gates map[string]*demo.Gate
	// token is the latest that was good.
	token string
}

// request is what reached the protection; with the token's claims if it was let through.
type request struct {
	Method, Tool string
	Passed       bool
	Claims       claims
}

// protect puts one before an MCP server with the endpoint at path; more are other paths of the same server.
func protect(t *testing.T, as *authorizationServer, upstream *nodeServer, path string, more ...string) *protection {
	t.Helper()
	target, err := url.Parse(upstream.url)
	require.NoError(t, err)
	p := &protection{as: as, path: path, tokens: map[string]bool{}, gates: map[string]*demo.Gate{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	metadata := "/.well-known/oauth-protected-resource" + path
	mux.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: p.url(), AuthorizationServers: []string{as.issuer}, ScopesSupported: []string{scopeTools},
		BearerMethodsSupported: []string{"header"}, ResourceName: "Everything",
	}))
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	guarded := auth.RequireBearerToken(p.verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: p.URL + metadata, Scopes: []string{scopeTools}, ClockSkew: 2 * time.Second,
	})(p.gate(forward))
	for _, path := range append(more, path) {
		mux.Handle(path, p.record(guarded))
	}
	return p
}

// url is the endpoint and the resource identifier.
func (p *protection) url() string { return p.URL + p.path }

func (p *protection) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	c, err := p.as.verify(token, p.url())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens[c.ID] {
		return nil, fmt.Errorf("%w: withdrawn", auth.ErrInvalidToken)
	}
	p.tokens[c.ID], p.token = false, token
	return &auth.TokenInfo{
		UserID: c.Subject, Scopes: strings.Fields(c.Scope), Expiration: time.Unix(c.Expires, 0), Extra: map[string]any{"claims": c},
	}, nil
}

type requestKey struct{}

// record writes down each request and how it was answered.
func (p *protection) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var message struct {
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(body, &message) // what has no body has no method
		if message.Method != "tools/call" {
			message.Params.Name = ""
		}
		p.mu.Lock()
		at := len(p.requests)
		p.requests = append(p.requests, request{Method: message.Method, Tool: message.Params.Name})
		p.mu.Unlock()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, at)))
	})
}

// gate notes what was let through and holds a call before the server sees it.
func (p *protection) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := auth.TokenInfoFromContext(r.Context()).Extra["claims"].(claims)
		at, _ := r.Context().Value(requestKey{}).(int)
		p.mu.Lock()
		p.requests[at].Passed, p.requests[at].Claims = true, c
		held := p.gates[p.requests[at].Tool]
		p.mu.Unlock()
		held.Pass(r.Context())
		next.ServeHTTP(w, r)
	})
}

// hold keeps calls of a tool at the gate.
func (p *protection) hold(tool string) *demo.Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[tool] = demo.NewGate()
	return p.gates[tool]
}

// refuse answers 401 to every token that has come until now.
func (p *protection) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.tokens {
		p.tokens[id] = true
	}
}

// calls are the calls of a tool that were let through; "" is every tool.
func (p *protection) calls(tool string) (out []request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.Method == "tools/call" && r.Passed && (tool == "" || r.Tool == tool) {
			out = append(out, r)
		}
	}
	return out
}

func (p *protection) latestToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}
