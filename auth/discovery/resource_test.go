package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/discovery"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://X.example/":          "https://x.example",
		"https://x.example":           "https://x.example",
		"HTTPS://x.example:443/mcp":   "https://x.example/mcp",
		"http://127.0.0.1:80/a/":      "http://127.0.0.1/a/",
		"https://x.example:8443/a#f":  "https://x.example:8443/a",
		"https://x.example/a?tenant=": "https://x.example/a?tenant=",
	} {
		got, ok := discovery.Canonical(in)
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "/mcp", "ftp://x/", "https://u:p@x/", "https:x", "javascript:alert(1)", "https://", "https://x/%zz"} {
		_, ok := discovery.Canonical(in)
		require.False(t, ok, in)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		resource, server string
		want             bool
	}{
		{"https://x/mcp", "https://x/mcp", true},
		{"https://x/mcp", "https://X:443/mcp/", true},
		{"https://x/mcp/", "https://x/mcp", true},
		{"https://x", "https://x/mcp", true},
		{"https://x/", "https://x/mcp?a=b", true},
		{"https://x/mcp", "https://x/mcp/tools", true},
		{"https://x/mcp", "https://x/mcpevil", false},
		{"https://x/mcp", "https://x/", false},
		{"https://x/mcp", "https://y/mcp", false},
		{"https://x/mcp", "http://x/mcp", false},
		{"https://x:8443", "https://x/mcp", false},
		{"https://x", "https://x.evil/mcp", false},
		{"https://x/mcp", "https://x/mcp/../admin", false},
		{"https://x/mcp", "https://x/mcp/%2e%2e/admin", false},
		{"https://x/mcp", "https://x/mcp/..%2fadmin", false},
		{"https://x/mcp", "https://x/mcp/..%5cadmin", false},
		{"https://x/a?t=1", "https://x/a?t=2", false},
		{"https://x/a?t=1", "https://x/a?t=1", true},
		{"", "https://x/mcp", false},
		{"https://x", "https://x@evil/", false},
	} {
		require.Equal(t, tc.want, discovery.Covers(tc.resource, tc.server), "%s for %s", tc.resource, tc.server)
	}
}

func TestResourcesOfAServer(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"https://x/mcp", "https://x/mcp/", "https://x", "https://x/"}, discovery.Resources("https://x/mcp"))
	require.Equal(t, []string{"https://x/mcp?k=1", "https://x/mcp/", "https://x/mcp", "https://x", "https://x/"}, discovery.Resources("https://x/mcp?k=1"))
	require.Equal(t, []string{"https://x", "https://x/"}, discovery.Resources("https://x"))
	require.Empty(t, discovery.Resources("stdio"))
}
