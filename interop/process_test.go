//go:build interop

package interop_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nodeServer is a server on Node.js in a process of its own.
type nodeServer struct {
	url  string
	stop func()
}

func (s *nodeServer) port() string { return strings.TrimPrefix(s.url, "http://127.0.0.1:") }

// startNode runs a server until the test ends, or until it is stopped.
func startNode(t *testing.T, env []string, args ...string) *nodeServer {
	t.Helper()
	log := filepath.Join(t.TempDir(), "node.log")
	file, err := os.Create(log)
	require.NoError(t, err)
	//nolint:gosec,noctx // pinned programs; ended by its id below, and by itself when its standard input ends
	cmd := exec.Command(node, append([]string{"--import", "./preload.mjs"}, args...)...)
	cmd.Dir, cmd.Stderr = packages, file
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if port, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- port
			}
		}
	}()
	s := &nodeServer{stop: sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		_ = file.Close()
	})}
	t.Cleanup(func() {
		s.stop()
		if body, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("--- %s\n%s", args[len(args)-1], body)
		}
	})
	select {
	case port := <-ready:
		s.url = "http://127.0.0.1:" + port
	case <-ended:
		require.Fail(t, "server ended")
	case <-time.After(time.Minute):
		require.Fail(t, "server does not start")
	}
	return s
}

// startEverything runs the reference MCP server, which knows no logins, on a port; 0 is a free one.
func startEverything(t *testing.T, transport, port string) *nodeServer {
	t.Helper()
	return startNode(t, []string{"PORT=" + port}, "node_modules/@modelcontextprotocol/server-everything/dist/index.js", transport)
}
