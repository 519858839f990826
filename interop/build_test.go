//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries is the folder of the programs under test, packages that of the npm packages, node a Node.js that runs them.
var binaries, packages, node string

func TestMain(m *testing.M) { os.Exit(test(m)) }

func test(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tarry-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	binaries = dir
	return m.Run()
}

func prepare(dir string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return fmt.Errorf("find repository: %w", err)
	}
	packages, node = filepath.Join(root, "bin/npm/interop"), filepath.Join(root, "bin/npm/node")
	for _, path := range []string{node, packages + "/node_modules"} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("run make interop: %w", err)
		}
	}
	// Node.js looks for packages above a module's own place.
	for _, name := range []string{"provider.mjs", "preload.mjs"} {
		body, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(packages, name), body, 0o600) //nolint:gosec // into our own bin
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	args, cgo := []string{"build", "-tags", "faults", "-o", dir + "/"}, "CGO_ENABLED=0"
	if raceDetector {
		args, cgo = append(args, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false"), "CGO_ENABLED=1" // as the Makefile's RACE
	}
	for _, build := range []struct {
		dir, cgo string
		args     []string
	}{
		{root + "/devserver", "CGO_ENABLED=0", []string{"build", "-trimpath", "-o", "../bin/devserver", "."}}, // cached; minutes the first time
		{root, cgo, append(args, "./cmd/worker", "./cmd/server")},
	} {
		fmt.Fprintln(os.Stderr, "interop: go", build.args)
		cmd := exec.CommandContext(context.Background(), "go", build.args...) //nolint:gosec // our own programs
		cmd.Dir, cmd.Stdout, cmd.Stderr = build.dir, os.Stderr, os.Stderr
		cmd.Env = append(os.Environ(), build.cgo)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	if err := os.Symlink(root+"/bin/devserver", filepath.Join(dir, "devserver")); err != nil {
		return fmt.Errorf("link devserver: %w", err)
	}
	return nil
}
