//go:build interop

package interop_test

import (
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// scopeTools is what the reference MCP server's calls need.
const scopeTools = "mcp:tools"

// authorizationServer is oidc-provider in a process of its own.
type authorizationServer struct {
	t      *testing.T
	issuer string
	keys   map[string]*rsa.PublicKey
}

// seen is what the authorization server did, oldest first.
type seen struct {
	Registered []struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Type   string `json:"application_type"`
	}
	// Documents are the client metadata documents that it fetched.
	Documents      []string
	Authorizations []map[string]any
	// Tokens are the parameters of the token requests that it granted; "refreshed" is the refresh token it gave.
	Tokens []map[string]string
	Errors []struct{ At, Error, Description string }
	// Revoked are grants that it ended because a refresh token was used twice.
	Revoked []string
}

// startProvider starts one whose access tokens live for life.
func startProvider(t *testing.T, life time.Duration, env ...string) *authorizationServer {
	t.Helper()
	scopes := strings.Join([]string{scopeTools, demo.ScopeRead, demo.ScopeWrite, demo.ScopePublish}, " ")
	a := &authorizationServer{t: t, issuer: startNode(t, append([]string{
		"SCOPES=" + scopes, "ACCESS_TTL=" + strconv.Itoa(int(life/time.Second)),
	}, env...), "provider.mjs").url}
	a.loadKeys()
	return a
}

func (a *authorizationServer) get(path string) []byte {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.issuer+path, nil)
	require.NoError(a.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	require.Less(a.t, resp.StatusCode, 300, path)
	return body
}

func (a *authorizationServer) seen() (out seen) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.get("/test/seen"), &out))
	return out
}

// granted counts the token requests of a grant type that were granted.
func (s seen) granted(grantType string) (n int) {
	for _, form := range s.Tokens {
		if form["grant_type"] == grantType {
			n++
		}
	}
	return n
}

// withdraw ends every grant, as an operator or the person would on the provider's own pages.
func (a *authorizationServer) withdraw() {
	a.t.Helper()
	a.get("/test/withdraw")
}
