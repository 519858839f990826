package main_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// binary is the program under test.
var binary string

// TestMain builds the program once, or takes the one that TARRY_DEVSERVER_BIN names.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		binary = os.Getenv("TARRY_DEVSERVER_BIN")
		if binary != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "devserver")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "devserver")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// process is a dev server that was started by a test.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *output
	lines  chan string   // of standard output; closed at its end
	exited chan struct{} // closed after Wait
}

// output collects what a process writes while others read it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch starts the program without waiting for it to be ready.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{
		t:      t,
		cmd:    exec.Command(binary, args...), //nolint:noctx // the test decides how it ends
		stderr: &output{},
		lines:  make(chan string, 16),
		exited: make(chan struct{}),
	}
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			p.lines <- scanner.Text()
		}
		close(p.lines)
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

// start returns when the program says that it is ready, with the address that it names.
func start(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := launch(t, args...)
	return p, p.ready()
}

func (p *process) ready() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		require.True(p.t, ok, "ended before it was ready: %s", p.stderr)
		addr, found := strings.CutPrefix(line, "ready ")
		require.True(p.t, found, "unexpected line %q", line)
		return addr
	case <-time.After(30 * time.Second):
		require.FailNow(p.t, "not ready", "%s", p.stderr)
		return ""
	}
}

// kill is a SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop is a SIGTERM; it returns the exit status.
func (p *process) stop() int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.wait()
}

func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		require.FailNow(p.t, "does not end", "%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// refused runs the program, which must end by itself with the status, and returns the one line it says.
func refused(t *testing.T, status int, args ...string) string {
	t.Helper()
	p := launch(t, args...)
	require.Equal(t, status, p.wait(), "%s", p.stderr)
	_, printed := <-p.lines
	require.False(t, printed)
	text := p.stderr.String()
	require.Equal(t, 1, strings.Count(text, "\n"), "one line, got %q", text)
	return text
}

func dial(t *testing.T, addr string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: addr, Logger: silent{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// freePort returns a port that nothing listens on, below the range that the system gives to others.
func freePort(t *testing.T) string {
	t.Helper()
	for port := 19000 + os.Getpid()%900; port < 20000; port++ {
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			require.NoError(t, listener.Close())
			return fmt.Sprint(port)
		}
	}
	require.FailNow(t, "no free port")
	return ""
}

// silent is an SDK logger: a client complains loudly while its server is dead.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
