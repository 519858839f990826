package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// A provider that rejects the resource parameter (pitfall M8): the page and the log name the key that mends it, and with
// the key the login works.
func TestProviderThatRejectsResource(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("One ticket."))
	o.faults = demo.Faults{RejectResource: true, ResourceOptional: true}
	o.agents["relaxed/root_agent.yaml"] = assistant("") + "      tarry: {omit_resource: true}\n"
	w := newWorld(t, o)
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.AnyAudience = true })
	r := w.api.start("assistant", "Go.")
	page, err := w.tryLogin(w.waiting(r))
	require.NoError(t, err)
	require.Equal(t, "Set-up problem", page.Title)
	require.Contains(t, page.Text, "omit_resource")
	log, err := os.ReadFile(w.LogFile(stack.Server))
	require.NoError(t, err)
	require.Contains(t, string(log), "write omit_resource: true under tarry in the definition")
	require.Zero(t, w.provider.Counts().Token["authorization_code"])

	relaxed := w.api.start("relaxed", "Go.")
	require.Contains(t, w.login(w.waiting(relaxed)).Title, "Connected")
	require.Equal(t, "One ticket.", w.finished(relaxed).Answer)
	require.Contains(t, w.query(`SELECT detail FROM audit WHERE action = 'opened'`), "omit_resource")

	// The client's metadata is there for anybody, also where no provider is told of it.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL()+"/oauth/client-metadata.json", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	var document struct {
		ID   string   `json:"client_id"`
		URIs []string `json:"redirect_uris"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&document))
	require.Equal(t, w.URL()+"/oauth/client-metadata.json", document.ID)
	require.Empty(t, document.URIs, "these logins registered a client")
}
