package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// baseScopes are what a first challenge asks for: everything but publishing.
func baseScopes() []string { return []string{ScopeRead, ScopeWrite} }

// toolScopes are what a call of tool needs. Anything that is no tool call needs ScopeRead.
func toolScopes(tool string) []string {
	switch tool {
	case "create_plan", "add_comment":
		return []string{ScopeRead, ScopeWrite}
	case "publish_plan":
		return []string{ScopeRead, ScopeWrite, ScopePublish}
	default:
		return []string{ScopeRead}
	}
}

// resourceMetadata is RFC 9728 section 3.2.
func (m *MCPServer) resourceMetadata(w http.ResponseWriter, r *http.Request) {
	s := m.Switches()
	if s.NoMetadata {
		http.NotFound(w, r)
		return
	}
	doc := oauthex.ProtectedResourceMetadata{
		Resource:               m.URL(),
		AuthorizationServers:   []string{m.provider().Issuer()},
		ScopesSupported:        []string{ScopeRead, ScopeWrite, ScopePublish},
		BearerMethodsSupported: []string{"header"},
		ResourceName:           "Release planner",
	}
	if s.MetadataResource != "" {
		doc.Resource = s.MetadataResource
	}
	if s.AuthorizationServers != nil {
		doc.AuthorizationServers = s.AuthorizationServers
	}
	writeJSON(w, http.StatusOK, doc)
}

// protect decides about a request before the MCP side sees it: a refused call has not run (plain is the MCP side
// without, guarded with the caller's token).
func (m *MCPServer) protect(plain, guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		method, tool, err := peek(rec, r)
		if err != nil {
			http.Error(rec, "body cannot be read", http.StatusBadRequest)
			return
		}
		user := m.admit(rec, r, method, tool, plain, guarded)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests = append(m.requests, MCPRequest{
			HTTPMethod: r.Method, Method: method, Tool: tool, User: user, Status: rec.status,
		})
	})
}

// admit answers the request and returns whose token it carried.
func (m *MCPServer) admit(w http.ResponseWriter, r *http.Request, method, tool string, plain, guarded http.Handler) string {
	s := m.Switches()
	bearer := bearerToken(r)
	if bearer == "" {
		if s.OpenListing && method != "tools/call" {
			plain.ServeHTTP(w, r)
			return ""
		}
		m.challenge(w, s, http.StatusUnauthorized, "", baseScopes())
		return ""
	}
	token, ok := m.verify(bearer)
	if !ok || s.RejectTokens {
		m.challenge(w, s, http.StatusUnauthorized, "invalid_token", baseScopes())
		return ""
	}
	need := toolScopes(tool)
	for _, scope := range need {
		if !slices.Contains(token.Scopes, scope) {
			// All scopes in one challenge, not only the missing one: a client that asks for less would lose some.
			m.challenge(w, s, http.StatusForbidden, "insufficient_scope", need)
			return token.User
		}
	}
	if method == "tools/call" && s.CallStatus != 0 {
		http.Error(w, http.StatusText(s.CallStatus), s.CallStatus)
		return token.User
	}
	guarded.ServeHTTP(w, r)
	return token.User
}

func (m *MCPServer) challenge(w http.ResponseWriter, s MCPSwitches, status int, code string, scopes []string) {
	var params []string
	if code != "" {
		params = append(params, fmt.Sprintf("error=%q", code))
	}
	if !s.NoMetadataLink {
		params = append(params, fmt.Sprintf("resource_metadata=%q", m.MetadataURL()))
	}
	if !s.NoScopeHint || status == http.StatusForbidden {
		params = append(params, fmt.Sprintf("scope=%q", strings.Join(scopes, " ")))
	}
	header := "Bearer"
	if len(params) > 0 {
		header += " " + strings.Join(params, ", ")
	}
	w.Header().Set("WWW-Authenticate", header)
	http.Error(w, http.StatusText(status), status)
}

// provider is the one that protects the server at this moment.
func (m *MCPServer) provider() TokenIssuer {
	if p := m.Switches().Provider; p != nil {
		return p
	}
	return m.cfg.Provider
}

// verify looks the token up and checks that it was issued for this server.
func (m *MCPServer) verify(bearer string) (Token, bool) {
	token, ok := m.provider().Verify(bearer)
	if !ok || (token.Resource != m.URL() && !m.Switches().AnyAudience) {
		return Token{}, false
	}
	return token, true
}

// tokenInfo is the SDK's verifier; it carries the user to the tools.
func (m *MCPServer) tokenInfo(_ context.Context, bearer string, _ *http.Request) (*auth.TokenInfo, error) {
	token, ok := m.verify(bearer)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		UserID: token.User, Scopes: token.Scopes, Expiration: token.Expires,
		Extra: map[string]any{"client_id": token.ClientID},
	}, nil
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// peek reads method and tool of a JSON-RPC request and leaves the body as it was.
func peek(w http.ResponseWriter, r *http.Request) (method, tool string, err error) {
	if r.Method != http.MethodPost {
		return "", "", nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil {
		return "", "", fmt.Errorf("read body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	// What is no request is the MCP side's to refuse; a batch has no method and so needs a token.
	_ = json.Unmarshal(body, &msg)
	if msg.Method != "tools/call" {
		return msg.Method, "", nil
	}
	return msg.Method, msg.Params.Name, nil
}
