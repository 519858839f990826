package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// TestMain makes the test binary play the programs: it is linked under their names.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "devserver", "worker", "server":
		os.Exit(fake(name))
	case "parent":
		os.Exit(parent())
	}
	os.Exit(m.Run())
}

// fake serves its environment until SIGTERM. FAKE_<name> makes it misbehave.
func fake(name string) int {
	mode := os.Getenv("FAKE_" + strings.ToUpper(name))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(os.Stderr, name, "says hello")
	switch mode {
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		return 3
	case "silent":
		<-ctx.Done()
		return 0
	case "child":
		child := exec.Command("sleep", "600") //nolint:noctx // it is to be left behind
		if err := child.Start(); err != nil {
			return 4
		}
		defer func() { _ = child.Process.Release() }()
		fmt.Println("child", child.Process.Pid)
	}
	listener, err := net.Listen("tcp", address(name)) //nolint:noctx // as long as the process
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/die" {
			os.Exit(7)
		}
		_ = json.NewEncoder(w).Encode(os.Environ())
	})
	go func() { _ = http.Serve(listener, serve) }() //nolint:gosec // a test
	fmt.Println("listening soon")
	if name == "devserver" {
		fmt.Println("ready " + address(name))
	} else {
		fmt.Println("ready http://" + address(name))
	}
	<-ctx.Done()
	if mode == "stubborn" {
		select {}
	}
	return 0
}

func address(name string) string {
	switch name {
	case "worker":
		return os.Getenv("TARRY_ADMIN_ADDR")
	case "server":
		return os.Getenv("TARRY_HTTP_ADDR")
	default:
		return "127.0.0.1:" + os.Args[slices.Index(os.Args, "--port")+1]
	}
}

// parent starts a stack, names its processes and waits to be killed.
func parent() int {
	s, err := stack.New(context.Background(), stack.Config{Dir: os.Args[1], Bin: filepath.Dir(os.Args[0])})
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.Pid(stack.Temporal), s.Pid(stack.Worker), s.Pid(stack.Server))
	select {}
}

// bin links the test binary under the programs' names.
func bin(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"devserver", "worker", "server", "parent"} {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	return dir
}
