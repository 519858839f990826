package discovery_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/discovery"
)

// documents answers by path, without a network; what is not there is 404.
type documents map[string]string

func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusOK
	body, ok := d[r.URL.Path]
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

const fuzzServer, fuzzIssuer = "https://rs.example/mcp", "https://as.example"

// found checks what must hold of whatever servers wrote.
func found(t *testing.T, docs documents, rules discovery.Rules) {
	t.Helper()
	d := &discovery.Discoverer{HTTP: &http.Client{Transport: docs}}
	got, err := d.Server(t.Context(), fuzzServer, nil, rules)
	if err != nil {
		require.Empty(t, got.Provider.TokenEndpoint)
		require.NotContains(t, err.Error(), "CANARY", "what servers write is not repeated")
		return
	}
	require.True(t, slices.Contains(discovery.Resources(fuzzServer), got.Resource), got.Resource)
	require.True(t, discovery.Covers(got.Resource, fuzzServer))
	p := got.Provider
	for _, endpoint := range []string{p.AuthorizationEndpoint, p.TokenEndpoint, p.RegistrationEndpoint, p.RevocationEndpoint} {
		if endpoint == "" {
			continue
		}
		u, err := url.Parse(endpoint)
		require.NoError(t, err)
		require.Equal(t, "https", strings.ToLower(u.Scheme))
		require.Nil(t, u.User)
		require.NotEmpty(t, u.Host)
	}
	require.NotEmpty(t, p.TokenEndpoint)
	for _, s := range slices.Concat(got.Scopes, p.Scopes) {
		require.NotContains(t, s, " ")
	}
	_, err = json.Marshal(got)
	require.NoError(t, err)
}

func FuzzResourceMetadata(f *testing.F) {
	for _, seed := range []string{
		`{"resource":"https://rs.example/mcp","authorization_servers":["https://as.example"],"scopes_supported":["r","w"]}`,
		`{"resource":"https://rs.example/mcp/","authorization_servers":["https://as.example/"]}`,
		`{"resource":"https://rs.example","authorization_servers":["https://as.example"]}`,
		`{"resource":["x"]}`, `[]`, `null`, `"`, `{"resource":"https://rs.example/mcp","authorization_servers":["javascript:x","","https://as.example"]}`,
		`{"resource":"https://CANARY@rs.example/mcp","authorization_servers":[null,1,{}]}`, `{"resource":"https://rs.example/mcp","scopes_supported":"r w"}`,
	} {
		f.Add(seed)
	}
	as := `{"issuer":"https://as.example","authorization_endpoint":"https://as.example/a","token_endpoint":"https://as.example/t","code_challenge_methods_supported":["S256"]}`
	f.Fuzz(func(t *testing.T, doc string) {
		found(t, documents{prm + "/mcp": doc, asm: as}, discovery.Rules{})
		found(t, documents{prm: doc, asm: as}, discovery.Rules{Legacy: true})
	})
}

func FuzzServerMetadata(f *testing.F) {
	for _, seed := range []string{
		`{"issuer":"https://as.example","authorization_endpoint":"https://as.example/a","token_endpoint":"https://as.example/t","code_challenge_methods_supported":["S256"]}`,
		`{"issuer":"https://as.example/","authorization_endpoint":"HTTPS://as.example/a","token_endpoint":"https://as.example:443/t?x=y","registration_endpoint":null,"scopes_supported":["a b","c"]}`,
		`{"issuer":"https://as.example","authorization_endpoint":"data:x","token_endpoint":"https://u:CANARY@as.example/t"}`,
		`{"issuer":"https://as.example","authorization_endpoint":"https://as.example/a#x","token_endpoint":"http://as.example/t"}`,
		`{"issuer":1}`, `[]`, `null`, ``, `{"token_endpoint_auth_methods_supported":{"a":1}}`,
	} {
		f.Add(seed)
	}
	resource := `{"resource":"https://rs.example/mcp","authorization_servers":["` + fuzzIssuer + `"]}`
	f.Fuzz(func(t *testing.T, doc string) {
		found(t, documents{prm + "/mcp": resource, asm: doc}, discovery.Rules{})
		found(t, documents{prm + "/mcp": resource, asm: "<html>", oidc: doc}, discovery.Rules{AllowMissingPKCE: true, NoLogin: true})
		found(t, documents{asm: doc}, discovery.Rules{Legacy: true})
	})
}
