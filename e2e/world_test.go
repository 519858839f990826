package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/store/storetest"
)

// world is a running Tarry with everything around it.
type world struct {
	*stack.Stack
	t        testing.TB
	dir      string
	provider *demo.Provider
	mcp      *demo.MCPServer
	api      apiClient
	// database is a PostgreSQL's; empty: that of the stack, on SQLite.
	database string
}

type options struct {
	agents map[string]string // path below the agents folder → file
	script string
	env    []string
	mcp    demo.MCPConfig
	faults demo.Faults
	// open lets everybody list tools; only calls need a login.
	open bool
	// temporal is added to the dev server's command line, worker to the worker's environment.
	temporal, worker []string
	// provider is one that runs already; nil starts one.
	provider *demo.Provider
	// database is the URL of a PostgreSQL; empty means SQLite.
	database string
}

// patience is longer than anything takes on a machine that is busy and with the race detector on.
const patience = 4 * time.Minute

// onPostgres is the variable that gives each world a PostgreSQL of its own: `make test-postgres` runs the search for secrets
// once more with it.
const onPostgres = "TARRY_TEST_WORLDS_ON_POSTGRES"

// newWorld starts everything; it stops with the test.
func newWorld(tb testing.TB, o options) *world {
	tb.Helper()
	dir := tb.TempDir()
	if o.database == "" && os.Getenv(onPostgres) != "" {
		o.database = storetest.Schema(tb)
	}
	w := &world{t: tb, dir: dir, database: o.database}
	if o.database != "" {
		o.env = append(o.env, "TARRY_DATABASE_URL="+o.database)
	}
	var err error
	if w.provider = o.provider; w.provider == nil {
		w.provider, err = demo.NewProvider(demo.ProviderConfig{Faults: o.faults})
		require.NoError(tb, err)
		require.NoError(tb, w.provider.Start(""))
		tb.Cleanup(func() { require.NoError(tb, w.provider.Close()) })
	}
	o.mcp.Provider = w.provider
	w.mcp, err = demo.NewMCPServer(o.mcp)
	require.NoError(tb, err)
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = o.open })
	require.NoError(tb, w.mcp.Start(""))
	tb.Cleanup(func() { require.NoError(tb, w.mcp.Close()) })

	for path, body := range o.agents {
		w.write(filepath.Join("agents", path), body)
	}
	w.write("scripts/script.yaml", o.script)
	require.NoError(tb, os.MkdirAll(filepath.Join(dir, "faults"), 0o700))
	w.Stack, err = stack.New(tb.Context(), stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: binaries, AgentsDir: filepath.Join(dir, "agents"),
		TemporalArgs: o.temporal, WorkerEnv: o.worker,
		Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Env: append([]string{
			"TARRY_SCRIPTS_DIR=" + filepath.Join(dir, "scripts"), "TARRY_SCRIPT_JOURNAL=" + w.journal(),
			"TARRY_VARS=MCP_URL=" + w.mcp.URL() + ",MODEL=scripted/script",
			"TARRY_FAULT_DIR=" + filepath.Join(dir, "faults"), "TARRY_LOG_LEVEL=debug",
		}, o.env...),
	})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, w.Close())
		w.checkRaces()
		w.checkInvariants()
		if tb.Failed() {
			w.dump()
		}
	})
	require.NoError(tb, w.Start(tb.Context(), stack.All()...))
	w.api = apiClient{t: tb, base: w.URL()}
	return w
}

func (w *world) journal() string { return filepath.Join(w.dir, "journal.jsonl") }

func (w *world) write(path, body string) {
	w.t.Helper()
	path = filepath.Join(w.dir, path)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(body), 0o600))
}

// checkRaces fails the test if the race detector of a program under test has spoken.
func (w *world) checkRaces() {
	w.t.Helper()
	for _, name := range stack.All() {
		body, err := os.ReadFile(w.LogFile(name))
		require.NoError(w.t, err)
		if i := strings.Index(string(body), "WARNING: DATA RACE"); i >= 0 {
			require.Fail(w.t, "data race in "+string(name), string(body[i:min(len(body), i+4000)]))
		}
	}
}

// dump shows the ends of the logs of a failed test.
func (w *world) dump() {
	for _, name := range soakProcesses() {
		body, err := os.ReadFile(w.LogFile(name))
		if err != nil {
			continue
		}
		lines := strings.Split(string(body), "\n")
		w.t.Logf("--- %s\n%s", name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// login answers a login request as a person with a browser would.
func (w *world) login(link string) *demo.Page {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	page, err := demo.NewBrowser().Login(ctx, link, "alice", "alice-password")
	require.NoError(w.t, err)
	return page
}

// hold makes the next process that reaches point stay there; held waits until one does.
func (w *world) hold(point string) { w.write("faults/"+point+".hold", "") }

func (w *world) held(point string) {
	w.t.Helper()
	w.eventually("nobody reached "+point, func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "faults", point+".held"))
		return err == nil
	})
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, patience, 50*time.Millisecond, what)
}
