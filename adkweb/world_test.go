//go:build adkweb

package adkweb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// world is a Tarry of real processes that serves the UI, with the demo's provider and MCP server.
type world struct {
	*stack.Stack
	provider *demo.Provider
	mcp      *demo.MCPServer
	rooms    *rooms
}

// build is where make puts the UI, and bin the programs: those that ship, and a worker that has a long-running tool.
const (
	build = "../bin/npm/adkweb/node_modules/@google/adk-devtools/dist/browser"
	bin   = "../bin/adkweb"
)

func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{}
	var err error
	w.provider, err = demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, w.provider.Start(""))
	t.Cleanup(func() { require.NoError(t, w.provider.Close()) })
	w.mcp, err = demo.NewMCPServer(demo.MCPConfig{Provider: w.provider})
	require.NoError(t, err)
	require.NoError(t, w.mcp.Start(""))
	t.Cleanup(func() { require.NoError(t, w.mcp.Close()) })

	w.rooms = newRooms(t)

	agents, scripts := filepath.Join(dir, "agents"), filepath.Join(dir, "scripts")
	require.NoError(t, os.CopyFS(filepath.Join(agents, "planner"), os.DirFS("../examples/planner")))
	require.NoError(t, os.CopyFS(agents, os.DirFS("testdata/agents")))
	require.NoError(t, os.CopyFS(scripts, os.DirFS("testdata/scripts")))
	require.NoError(t, os.Rename(filepath.Join(agents, "planner", "script.yaml"), filepath.Join(scripts, "planner.yaml")))
	require.NoError(t, os.Remove(filepath.Join(agents, "planner", "planner_test.go")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "faults"), 0o700))
	w.Stack, err = stack.New(t.Context(), stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: bin, AgentsDir: agents,
		Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Env: append([]string{
			"TARRY_SCRIPTS_DIR=" + scripts, "TARRY_VARS=MCP_URL=" + w.mcp.URL() + ",ROOMS_URL=" + w.rooms.url + ",MODEL=scripted/planner",
			"TARRY_FAULT_DIR=" + filepath.Join(dir, "faults"), "TARRY_WEB_UI=" + absolute(t, build),
		}, env...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	return w
}

// shots is the folder of TARRY_SCREENSHOTS, or one here that is not committed. What an earlier run left in it goes.
func shots(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TARRY_SCREENSHOTS")
	if dir == "" {
		dir = "screenshots"
	}
	require.NoError(t, os.MkdirAll(dir, 0o750)) //nolint:gosec // a folder of whoever runs this
	for _, pattern := range []string{"[0-9][0-9]-*.png", "[0-9][0-9]-*.html", "[0-9][0-9]-*.txt", "requests-*.txt"} {
		old, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		for _, file := range old {
			require.NoError(t, os.Remove(file)) //nolint:gosec // as above
		}
	}
	return absolute(t, dir)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	require.NoError(t, err)
	return out
}

func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}
