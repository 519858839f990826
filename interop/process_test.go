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

// startNode runs a server on Node.js until the test ends and returns its base URL.
func startNode(t *testing.T, env []string, args ...string) string {
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
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if port, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- port
			}
		}
	})
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait()
		_ = file.Close()
		if body, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("--- %s\n%s", args[len(args)-1], body)
		}
	})
	select {
	case port := <-ready:
		return "http://127.0.0.1:" + port
	case <-ended:
	case <-time.After(time.Minute):
	}
	body, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Fail(t, "server does not start", string(body))
	return ""
}

// startEverything runs the reference MCP server, which knows no logins, and returns its endpoint.
func startEverything(t *testing.T) string {
	t.Helper()
	return startNode(t, []string{"PORT=0"},
		"node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp") + "/mcp"
}
