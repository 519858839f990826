package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// binaries is the folder of the programs under test: devserver as it ships, worker and server with fault points.
var binaries string

func TestMain(m *testing.M) {
	if dir := os.Getenv(slowServer); dir != "" {
		os.Exit(serveSlowly(dir))
	}
	flag.Parse()
	// These tests wait for timeouts of dead processes more than they compute.
	if p := flag.Lookup("test.parallel"); p.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = p.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if matrixWorker() { // a process of the tests' own
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tarry-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	faulty, cgo := []string{"build", "-tags", "faults", "-ldflags=-s -w", "-o", dir + "/"}, "CGO_ENABLED=0" // nobody debugs them; linked sooner
	if raceDetector {
		faulty, cgo = append(faulty, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false"), "CGO_ENABLED=1" // as the Makefile's RACE
	}
	for _, build := range []struct {
		dir, cgo string
		args     []string
	}{
		{"../devserver", "CGO_ENABLED=0", []string{"build", "-trimpath", "-o", "../bin/devserver", "."}}, // cached; minutes the first time
		{"..", cgo, append(faulty, "./cmd/worker", "./cmd/server", "./cmd/starter")},
	} {
		fmt.Fprintln(os.Stderr, "e2e: go", build.args)
		cmd := exec.CommandContext(context.Background(), "go", build.args...) //nolint:gosec // our own programs
		cmd.Dir, cmd.Stdout, cmd.Stderr = build.dir, os.Stderr, os.Stderr
		cmd.Env = append(os.Environ(), build.cgo)
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: build:", err)
			return 1
		}
	}
	devserver, err := filepath.Abs("../bin/devserver")
	if err == nil {
		err = os.Symlink(devserver, filepath.Join(dir, "devserver"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binaries = dir
	return m.Run()
}
