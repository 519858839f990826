//go:build pages

package pages_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/server/signin"
)

const audience = "https://tarry.example/api"

// running is a Tarry of real processes that signs people in, with the demo's providers and MCP server.
type running struct {
	*stack.Stack
	identity *demo.Provider
}

// run starts everything from bin; it ends with the test.
func run(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	provider := func(name string, faults demo.Faults) *demo.Provider {
		p, err := demo.NewProvider(demo.ProviderConfig{Name: name, Faults: faults})
		require.NoError(t, err)
		require.NoError(t, p.Start(""))
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		return p
	}
	identity, tools := provider("Company ID", demo.Faults{OIDCMetadata: true}), provider("Ticket Desk", demo.Faults{})
	mcp, err := demo.NewMCPServer(demo.MCPConfig{Provider: tools})
	require.NoError(t, err)
	require.NoError(t, mcp.Start(""))
	t.Cleanup(func() { require.NoError(t, mcp.Close()) })
	write := func(path, body string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(body), 0o600))
	}
	write("agents/assistant/root_agent.yaml", `name: assistant
model: ${var:MODEL}
instruction: Help with tickets.
tools:
  - name: McpToolset
    args:
      streamable_http_connection_params:
        url: ${var:MCP_URL}
`)
	write("scripts/script.yaml", `agents:
  - agent: assistant
    steps:
      - calls:
          - {name: whoami, args: {}}
      - text: "{{response.whoami.user}}"
`)
	bin, err := filepath.Abs("../bin")
	require.NoError(t, err)
	s, err := stack.New(t.Context(), stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: bin, AgentsDir: filepath.Join(dir, "agents"),
		Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Env: []string{
			"TARRY_SCRIPTS_DIR=" + filepath.Join(dir, "scripts"), "TARRY_VARS=MCP_URL=" + mcp.URL() + ",MODEL=scripted/script",
			"TARRY_SIGNIN=oidc,jwt", "TARRY_OIDC_ISSUER=" + identity.Issuer(), "TARRY_OIDC_CLIENT_ID=tarry", "TARRY_OIDC_CLIENT_SECRET=pages",
			"TARRY_OIDC_ALLOW=*", "TARRY_JWT_ISSUERS=" + identity.Issuer(), "TARRY_JWT_AUDIENCE=" + audience,
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Start(t.Context(), stack.All()...))
	identity.AddClient(demo.Client{ID: "tarry", Secret: "pages", RedirectURIs: []string{s.URL() + signin.CallbackPath}})
	return &running{s, identity}
}

// call asks the API as alice's program.
func (r *running) call(t *testing.T, method, path, body string, out any) {
	t.Helper()
	token, err := r.identity.Sign("at+jwt", map[string]any{"sub": demo.Subject("alice"), "client_id": "program", "aud": audience})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Less(t, resp.StatusCode, 300, path)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(out))
}

// status is what is said of a run.
type status struct {
	State      string
	Answer     string
	WaitingFor []struct{ Link string } `json:"waiting_for"`
}
