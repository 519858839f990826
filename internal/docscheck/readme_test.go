package docscheck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// block is a marked one of the README: <!-- test: HOW[, exit N] -->. HOW is run (to its end), until (again and again until
// it ends so) or start (in the background, in place of what was started before).
type block struct {
	how, script string
	exit        int
}

var marked = regexp.MustCompile("(?ms)^<!-- test: (run|until|start)(?:, exit (\\d))? -->\n```sh\n(.*?)^```$")

func blocks(t *testing.T) (out []block) {
	t.Helper()
	for _, m := range marked.FindAllStringSubmatch(read(t, "README.md"), -1) {
		b := block{how: m[1], script: m[3]}
		if m[2] != "" {
			b.exit = number(t, m[2])
		}
		out = append(out, b)
	}
	require.NotEmpty(t, out)
	require.Len(t, out, strings.Count(read(t, "README.md"), "```sh\n"), "a block of commands has no mark")
	return out
}

const patience = 2 * time.Minute

// reader is somebody who types what the README says, on a machine without a network: hosts of the examples are servers of
// the test.
type reader struct {
	t        *testing.T
	dir      string
	env      []string
	replace  *strings.Replacer
	port     string
	running  *exec.Cmd
	printed  *buffer
	temporal *regexp.Regexp
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// The commands of the README work, in their order.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	for _, b := range blocks(t) {
		t.Logf("%s:\n%s", b.how, b.script)
		switch b.how {
		case "start":
			r.start(b.script)
		case "until":
			require.Eventually(t, func() bool { return r.run(b.script) == b.exit }, patience, 200*time.Millisecond, b.script)
		default:
			require.Equal(t, b.exit, r.run(b.script), b.script)
		}
	}
}

func newReader(t *testing.T) *reader {
	t.Helper()
	dir := t.TempDir()
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	build(t, filepath.Join(dir, "bin"))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples", "planner"), os.DirFS(filepath.Join(root, "examples", "planner"))))

	provider, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, provider.Start(""))
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	server, err := demo.NewMCPServer(demo.MCPConfig{Provider: provider})
	require.NoError(t, err)
	require.NoError(t, server.Start(""))
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	model := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(func() { model.CloseClientConnections(); model.Close() })

	port := freePort(t)
	r := &reader{
		t: t, dir: dir, port: port, printed: &buffer{},
		temporal: regexp.MustCompile(`Temporal +(\S+),`),
		replace: strings.NewReplacer(
			"https://mcp.example.com/mcp", server.URL(),
			"https://login.example.com", provider.URL(),
			"cd examples/custom", "cd "+absolute+"/examples/custom",
			"cd examples/story", "cd "+absolute+"/examples/story",
		),
	}
	for _, name := range []string{"PATH", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GOTOOLCHAIN"} {
		if value, ok := os.LookupEnv(name); ok {
			r.env = append(r.env, name+"="+value)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // HOME is another
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		r.env = append(r.env, name+"="+strings.TrimSpace(string(out)))
	}
	r.env = append(r.env, "HOME="+dir, "CGO_ENABLED=0", "OPENAI_API_KEY=of-the-test", "OPENAI_BASE_URL="+model.URL, "TARRY_SERVER=http://127.0.0.1:"+port)
	t.Cleanup(r.stop)
	return r
}

// build makes the programs as `make build` does.
func build(t *testing.T, bin string) {
	t.Helper()
	for _, from := range []struct{ dir, of string }{
		{root, "./cmd/worker"},
		{root, "./cmd/server"},
		{root, "./cmd/starter"},
		{filepath.Join(root, "devserver"), "."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin+"/", from.of) //nolint:gosec // our own
		cmd.Dir, cmd.Env = from.dir, append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// answer is Chat Completions of one sentence.
func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"1","object":"chat.completion","model":"test","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":"Good morning to you."}}]}`)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return port
}

var starts = regexp.MustCompile(`bin/starter dev \S+`)

func (r *reader) command(ctx context.Context, script string) *exec.Cmd {
	script = starts.ReplaceAllString(r.replace.Replace(script), "exec ${0} --port "+r.port)
	if m := r.temporal.FindStringSubmatch(r.printed.String()); m != nil {
		script = strings.ReplaceAll(script, "temporal.example.com:7233", m[1])
	}
	cmd := exec.CommandContext(ctx, "bash", "-euc", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

func (r *reader) run(script string) int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := r.command(ctx, script).CombinedOutput()
	r.t.Logf("%s", out)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(r.t, err)
	return 0
}

// start waits until the server of what was started answers.
func (r *reader) start(script string) {
	r.t.Helper()
	r.stop()
	r.printed = &buffer{}
	r.running = r.command(context.WithoutCancel(r.t.Context()), script)
	r.running.Stdout, r.running.Stderr = r.printed, r.printed
	require.NoError(r.t, r.running.Start())
	require.Eventually(r.t, func() bool { return strings.Contains(r.printed.String(), "Ctrl-C stops everything") }, patience, 50*time.Millisecond, "not started")
	r.t.Logf("%s", r.printed.String())
}

func (r *reader) stop() {
	if r.running == nil {
		return
	}
	require.NoError(r.t, r.running.Process.Signal(syscall.SIGINT))
	require.NoError(r.t, r.running.Wait(), r.printed.String())
	r.running = nil
}
