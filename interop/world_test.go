//go:build interop

package interop_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// patience is longer than anything takes on a machine that is busy and with the race detector on.
const patience = 2 * time.Minute

// world is a running Tarry.
type world struct {
	*stack.Stack
	t   *testing.T
	dir string
}

// options say what agents there are (path below the agents folder → file) and what their scripted model says.
type options struct {
	agents map[string]string
	script string
	mcpURL string
	env    []string
	// prepare, if not nil, gets the server's address before it starts.
	prepare func(server string)
}

// newWorld starts everything; it stops with the test.
func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	for path, body := range o.agents {
		w.write(filepath.Join("agents", path), body)
	}
	w.write("scripts/script.yaml", o.script)
	var err error
	w.Stack, err = stack.New(t.Context(), stack.Config{
		Dir: filepath.Join(w.dir, "data"), Bin: binaries, AgentsDir: filepath.Join(w.dir, "agents"),
		Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir},
		Env: append([]string{
			"TARRY_SCRIPTS_DIR=" + filepath.Join(w.dir, "scripts"), "TARRY_VARS=MCP_URL=" + o.mcpURL + ",MODEL=scripted/script",
			"TARRY_LOG_LEVEL=debug",
		}, o.env...),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.Close())
		w.checkLogs()
	})
	if o.prepare != nil {
		o.prepare(w.URL())
	}
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	return w
}

func (w *world) write(path, body string) {
	w.t.Helper()
	path = filepath.Join(w.dir, path)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(body), 0o600))
}

// checkLogs fails the test if the race detector of a program under test has spoken, and shows the ends of a failed
// test's logs.
func (w *world) checkLogs() {
	w.t.Helper()
	for _, name := range stack.All() {
		body, err := os.ReadFile(w.LogFile(name))
		require.NoError(w.t, err)
		if i := strings.Index(string(body), "WARNING: DATA RACE"); i >= 0 {
			require.Fail(w.t, "data race in "+string(name), string(body[i:min(len(body), i+4000)]))
		}
		if w.t.Failed() {
			// Without the test's own polling.
			lines := slices.DeleteFunc(strings.Split(string(body), "\n"), func(l string) bool { return strings.Contains(l, `/status","status":200`) })
			w.t.Logf("--- %s\n%s", name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
}

// login does what a person does who has a link: our page, the provider's sign-in and consent, and back.
func (w *world) login(link string) {
	w.t.Helper()
	page := w.walk(link, demo.NewBrowser().Login)
	require.Contains(w.t, page.Title, "Connected", page.Text)
}

func (w *world) walk(link string, how func(ctx context.Context, link, user, password string) (*demo.Page, error)) *demo.Page {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	page, err := how(ctx, link, "alice", "alice-password")
	require.NoError(w.t, err)
	return page
}

// step says what a test does next.
func step(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s  %s", time.Now().Format(time.TimeOnly), what)
}
