package main_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"address of the network", []string{"--ip", "0.0.0.0"}, "not a loopback address"},
		{"address of another machine", []string{"--ip", "192.0.2.1"}, "not a loopback address"},
		{"host name", []string{"--ip", "example.com"}, "not a loopback address"},
		{"no flag", []string{"start"}, `"start" is not a flag`},
		{"unknown flag", []string{"--web"}, "web"},
		{"port", []string{"--port", "65536"}, "--port 65536"},
		{"retention", []string{"--retention", "0"}, "--retention 0"},
		{"attribute without type", []string{"--search-attribute", "Color"}, "want name=Type"},
		{"attribute of unknown type", []string{"--search-attribute", "Color=Colour"}, "unknown type"},
		{"attribute of Temporal", []string{"--search-attribute", "WorkflowId=Keyword"}, "reserved"},
		{"dynamic value that is not JSON", []string{"--dynamic-config-value", "a.b=x"}, "not JSON"},
		{"namespace", []string{"--namespace", ""}, "--namespace is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, refused(t, 2, tt.args...), tt.says)
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	p := launch(t, "--version")
	require.Equal(t, 0, p.wait())
	require.Regexp(t, `^tarry devserver, Temporal server 1\.\d+\.\d+`, <-p.lines)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "state.db")
	line := refused(t, 1, "--port", port, "--db", file)
	require.Contains(t, line, "port "+port+" on 127.0.0.1 is taken")
	require.Contains(t, line, "--port")
	require.NoFileExists(t, file)
}

func TestSecondServerOnOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "state.db")
	p, _ := start(t, "--port", "0", "--db", file)

	link := filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink(file, link))
	for _, name := range []string{file, link} {
		line := refused(t, 1, "--port", "0", "--db", name)
		require.Contains(t, line, file+" is in use by process "+strconv.Itoa(p.cmd.Process.Pid))
	}

	p.kill()
	start(t, "--port", "0", "--db", file)
}

func TestCleanStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, ready := filepath.Join(dir, "state.db"), filepath.Join(dir, "ready")
	require.NoError(t, os.WriteFile(ready, []byte("left by a server that was killed"), 0o600))

	args := []string{"--port", "0", "--db", file, "--ready-file", ready}
	p, addr := start(t, args...)
	refused(t, 1, args...) // leaves the file alone
	require.True(t, strings.HasPrefix(addr, "127.0.0.1:"))
	text, err := os.ReadFile(ready)
	require.NoError(t, err)
	require.Equal(t, addr+"\n", string(text))

	require.Equal(t, 0, p.stop())
	require.NoFileExists(t, ready)
	require.Empty(t, p.stderr.String(), "a start and stop without trouble log nothing")
	wal, err := os.Stat(file + "-wal")
	if err == nil {
		require.Zero(t, wal.Size(), "the file is complete without its log")
	}
}

func TestStopBeforeReady(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	p := launch(t, "--port", "0", "--db", file)
	require.Eventually(t, func() bool {
		_, err := os.Stat(file + ".lock")
		return err == nil
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 0, p.stop())
	_, ready := <-p.lines
	require.False(t, ready)
}
