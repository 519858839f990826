package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

// services starts the command and returns what it prints once it serves.
func services(t *testing.T, args ...string) map[string]string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		status := run(ctx, append([]string{"demo-services", "--json", "--provider-addr", "127.0.0.1:0", "--mcp-addr", "127.0.0.1:0"}, args...), func(string) string { return "" }, in, &stderr)
		_ = in.Close() // what ended prints no more
		done <- status
	}()
	t.Cleanup(func() {
		stop()
		require.Equal(t, exitDone, <-done, "it ends when it is told to")
	})
	said := map[string]string{}
	require.NoError(t, json.NewDecoder(out).Decode(&said), &stderr)
	return said
}

func TestDemoServices(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("of the client\n"), 0o600))
	said := services(t, "--client", "tarry", "--client-secret-file", secret, "--redirect-uri", "http://localhost:8080/callback")
	require.True(t, strings.HasSuffix(said["mcp"], "/mcp"))

	status, _, stderr := starter(t.Context(), nil, "health", said["issuer"]+"/.well-known/oauth-authorization-server")
	require.Equal(t, exitDone, status, stderr)
	status, _, stderr = starter(t.Context(), nil, "health", said["mcp"])
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "401")

	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		var document struct{ Issuer string }
		get(t, said["issuer"]+path, &document)
		require.Equal(t, said["issuer"], document.Issuer)
	}
}

// What is reached under another name says so in its documents.
func TestDemoServicesUnderOtherNames(t *testing.T) {
	t.Parallel()
	addr := freeAddress(t)
	said := services(t, "--provider-addr", addr, "--provider-url", "http://id.localhost:8090/", "--mcp-url", "https://mcp.example.com")
	require.Equal(t, map[string]string{"issuer": "http://id.localhost:8090", "mcp": "https://mcp.example.com/mcp"}, said)
	var document map[string]any
	get(t, "http://"+addr+"/.well-known/oauth-authorization-server", &document)
	require.Equal(t, "http://id.localhost:8090", document["issuer"])
	require.Equal(t, "http://id.localhost:8090/token", document["token_endpoint"])
}

func get(t *testing.T, address string, out any) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, address)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(out))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	p, err := listenOn(t.Context(), "x", "127.0.0.1:0", "", "")
	require.NoError(t, err)
	require.NoError(t, p.Close())
	return p.Addr().String()
}

func TestDemoServicesRefuses(t *testing.T) {
	t.Parallel()
	taken, err := listenOn(t.Context(), "x", "127.0.0.1:0", "", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	for want, args := range map[string][]string{
		"--provider-addr: listen":               {"--provider-addr", taken.Addr().String()},
		"--mcp-url \"mcp\" is not a URL":        {"--mcp-url", "mcp"},
		"--provider-url \"http://id/x\" is not": {"--provider-url", "http://id/x"},
		"name it with --client":                 {"--redirect-uri", "http://localhost/callback"},
		"has no redirect URI":                   {"--client", "tarry"},
		"--tls: open":                           {"--tls", "/none"},
		"--token-file: open":                    {"--token-file", "/none/token"},
		"--client-secret-file: open":            {"--client", "tarry", "--redirect-uri", "http://localhost/callback", "--client-secret-file", "/none"},
	} {
		status, _, stderr := starter(t.Context(), nil, append([]string{"demo-services", "--provider-addr", "127.0.0.1:0", "--mcp-addr", "127.0.0.1:0"}, args...)...)
		require.NotEqual(t, exitDone, status, stderr)
		require.Contains(t, stderr, want)
	}
}

// A token in a file is sent to the server, for the runs of whoever it is about.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	said := services(t, "--token-file", file)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	token, err := jwt.ParseSigned(strings.TrimSpace(string(body)), []jose.SignatureAlgorithm{jose.RS256})
	require.NoError(t, err)
	var keys jose.JSONWebKeySet
	get(t, said["issuer"]+"/jwks", &keys)
	var claims jwt.Claims
	require.NoError(t, token.Claims(keys, &claims))
	require.NoError(t, claims.Validate(jwt.Expected{Issuer: said["issuer"], Subject: "ledger-alice", AnyAudience: jwt.Audience{"tarry-api"}, Time: time.Now()}))

	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization") + " " + r.URL.Query().Get("user")
		_, _ = io.WriteString(w, `{"runs":[]}`)
	}))
	t.Cleanup(srv.Close)
	var out, stderr bytes.Buffer
	list := func(file string) int {
		return run(t.Context(), []string{"list", "--server", srv.URL}, func(name string) string { return map[string]string{"TARRY_TOKEN_FILE": file}[name] }, &out, &stderr)
	}
	require.Equal(t, exitDone, list(file), &stderr)
	require.Equal(t, "Bearer "+strings.TrimSpace(string(body))+" me", <-asked)
	require.Equal(t, exitUnusable, list("/none"))
	require.Contains(t, stderr.String(), "TARRY_TOKEN_FILE: open /none")
}

// A CA of the demo's own, which signs for its names alone, lets https be tried.
func TestDemoServicesOverTLS(t *testing.T) {
	t.Parallel()
	ca, dir := t.TempDir(), t.TempDir()
	certify := func(names ...string) string {
		status, _, stderr := starter(t.Context(), nil, append([]string{"demo-certificates", "--ca", ca, "--tls", dir}, names...)...)
		require.Equal(t, exitDone, status, stderr)
		return stderr
	}
	require.Contains(t, certify("127.0.0.1", "id.localhost"), "made")
	require.Contains(t, certify("127.0.0.1", "id.localhost"), "are good")
	require.Contains(t, certify("127.0.0.1", "mcp.localhost"), "made", "for other names")
	said := services(t, "--tls", dir)
	require.True(t, strings.HasPrefix(said["issuer"], "https://127.0.0.1:"))

	body, err := os.ReadFile(filepath.Join(ca, caFile))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(body))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	address := said["issuer"] + "/.well-known/oauth-authorization-server"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	status, _, stderr := starter(t.Context(), nil, "health", address)
	require.Equal(t, exitFailed, status, "nobody else trusts it")
	require.Contains(t, stderr, "certificate")
}
