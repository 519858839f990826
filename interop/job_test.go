//go:build interop

package interop_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// demoJob is the demo's agents and script, as they are.
func demoJob(t *testing.T) options {
	t.Helper()
	read := func(name string) string {
		body, err := os.ReadFile(filepath.Join("../examples/planner", name))
		require.NoError(t, err)
		return string(body)
	}
	o := options{agents: map[string]string{}, script: read("script.yaml")}
	for _, name := range []string{"root_agent.yaml", "planner.yaml", "reviewer.yaml"} {
		o.agents["planner/"+name] = read(name)
	}
	return o
}

// plannerServer is the demo's MCP server with the tokens of another authorization server.
func plannerServer(t *testing.T, as *authorizationServer) *demo.MCPServer {
	t.Helper()
	var m *demo.MCPServer
	m, err := demo.NewMCPServer(demo.MCPConfig{Provider: demoIssuer{as, func() string { return m.URL() }}})
	require.NoError(t, err)
	require.NoError(t, m.Start(""))
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// The demo's job with dynamic registration: it lists tools, is told 401, asks, is killed while it waits, and finishes
// after the login.
func TestDemoJobWithDynamicRegistration(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	planner := plannerServer(t, as)
	o := demoJob(t)
	o.mcpURL = planner.URL()
	w := newWorld(t, o)
	r := w.start("planner", "Plan the next release.")
	link := r.waiting()
	require.Zero(t, r.status().ModelCalls)
	require.Empty(t, as.seen().Registered, "registration is made when the person presses the button")

	require.NoError(t, w.Kill(stack.Worker, stack.Server))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	require.Equal(t, link, r.waiting())
	w.login(link)

	s := r.finished()
	require.Contains(t, s.Answer, "REL-103")
	require.Equal(t, 1, r.logins())
	require.Len(t, planner.Calls("create_plan"), 2)
	seen := as.seen()
	require.Len(t, seen.Registered, 1)
	require.Equal(t, "native", seen.Registered[0].Type)
	require.Empty(t, seen.Documents)
	require.Empty(t, seen.Errors)
	require.Equal(t, 1, seen.granted("authorization_code"))
	for _, form := range seen.Tokens {
		require.Equal(t, planner.URL(), form["resource"])
	}
}

// Consent that is refused at the provider: the model is told and the run goes on, without asking again.
func TestConsentRefusedAtTheProvider(t *testing.T) {
	t.Parallel()
	as := startProvider(t, providerOptions{})
	planner := plannerServer(t, as)
	o := demoJob(t)
	o.mcpURL = planner.URL()
	w := newWorld(t, o)
	r := w.start("planner", "Plan the next release.")
	step(t, "cancels on the provider's consent page")
	w.walk(r.waiting(), demo.NewBrowser().Deny)

	s := r.finished()
	require.Contains(t, s.Answer, "the login was not allowed")
	require.Equal(t, 1, r.logins())
	require.Empty(t, planner.Calls(""))
	seen := as.seen()
	require.Empty(t, seen.Tokens)
	require.Len(t, seen.Errors, 1)
	require.Equal(t, "access_denied", seen.Errors[0].Error)
}
