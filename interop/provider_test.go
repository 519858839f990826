//go:build interop

package interop_test

import (
	"cmp"
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
	t       *testing.T
	server  *nodeServer
	options providerOptions
	issuer  string
	keys    map[string]*rsa.PublicKey
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

// providerOptions say how the authorization server is set up; the zero value is a plain one.
type providerOptions struct {
	// life is that of access tokens; 0 means ten minutes.
	life time.Duration
	// base is a path that its issuer has.
	base string
	// noRefresh leaves refresh tokens out.
	noRefresh bool
	// port is that of one that is gone; empty means a free one.
	port string
	// authority is a file with the certificate of an authority that it trusts.
	authority string
}

func startProvider(t *testing.T, o providerOptions) *authorizationServer {
	t.Helper()
	if o.life == 0 {
		o.life = 10 * time.Minute
	}
	refresh := "yes"
	if o.noRefresh {
		refresh = "no"
	}
	scopes := strings.Join([]string{scopeTools, demo.ScopeRead, demo.ScopeWrite, demo.ScopePublish}, " ")
	server := startNode(t, []string{
		"PORT=" + cmp.Or(o.port, "0"), "SCOPES=" + scopes, "ACCESS_TTL=" + strconv.Itoa(int(o.life/time.Second)), "BASE=" + o.base, "REFRESH=" + refresh, "NODE_EXTRA_CA_CERTS=" + o.authority,
	}, "provider.mjs")
	a := &authorizationServer{t: t, server: server, options: o, issuer: server.url + o.base}
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

// restart ends the process and starts another in its place. Clients, grants and what it has seen are forgotten; its keys
// are the same.
func (a *authorizationServer) restart() {
	a.t.Helper()
	a.server.stop()
	a.options.port = a.server.port()
	a.server = startProvider(a.t, a.options).server
}
