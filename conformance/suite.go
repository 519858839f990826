package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// suiteTimeout is how long the suite lets one client take: a scenario waits for the others of its round.
const suiteTimeout = 3 * time.Minute

// suite is the installed npm package.
type suite struct{ node, script string }

func newSuite(dir string) (*suite, error) {
	s := &suite{
		node:   filepath.Join(dir, "node"),
		script: filepath.Join(dir, "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"),
	}
	for _, path := range []string{s.node, s.script} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("find the conformance suite (.ci/npm conformance installs it): %w", err)
		}
	}
	return s, nil
}

// command is a call of the suite.
func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.node, append([]string{s.script}, args...)...) //nolint:gosec // the installed suite
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// list returns the names below "Client scenarios" of a call of the suite's list command, without what follows a name.
func (s *suite) list(ctx context.Context, args ...string) ([]string, error) {
	out, err := s.command(ctx, append([]string{"list"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list scenarios %s: %w", strings.Join(args, " "), err)
	}
	var names []string
	inside := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		name, item := strings.CutPrefix(line, "  - ")
		switch {
		case item && inside:
			name, _, _ = strings.Cut(name, " ")
			names = append(names, name)
		case line != "":
			inside = strings.HasPrefix(line, "Client scenarios")
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("list scenarios %s: the suite names no client scenario", strings.Join(args, " "))
	}
	return names, nil
}

// run lets the suite run a scenario with this program as its client; passed is false also for what the suite skipped.
func (s *suite) run(ctx context.Context, sc scenario, results string, env []string) (passed bool, output string, err error) {
	cmd := s.command(ctx, "client", "--command", `"$`+envProgram+`" client`,
		"--scenario", sc.name, "--spec-version", sc.revision,
		"--timeout", fmt.Sprint(suiteTimeout.Milliseconds()), "--output-dir", results)
	cmd.Env = env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	output = out.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, output, fmt.Errorf("run the suite: %w", err)
	}
	return err == nil && strings.Contains(output, "OVERALL: PASSED"), output, nil
}
