package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Terminal is a program that runs as if a person sat before it: it shows something, and lines are entered. Safe for
// concurrent use.
type Terminal struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	over chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// RunInTerminal starts a program with nothing but env as its environment. It is killed when ctx ends.
func RunInTerminal(ctx context.Context, env []string, line ...string) (*Terminal, error) {
	t := &Terminal{over: make(chan struct{})}
	t.cmd = exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // the test's own
	t.cmd.Env, t.cmd.Stdout, t.cmd.Stderr = env, t, t
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("run in terminal: %w", err)
	}
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run in terminal: %w", err)
	}
	go func() {
		_ = t.cmd.Wait() // End says how
		close(t.over)
	}()
	return t, nil
}

// Write shows b; for the program.
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(b) //nolint:wrapcheck // never fails
}

// Shown is all that the program has shown so far.
func (t *Terminal) Shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.String()
}

// Await waits until text is shown. The error holds what is shown instead, when ctx or the program has ended.
func (t *Terminal) Await(ctx context.Context, text string) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	over := t.over
	for ; ; <-look.C {
		if strings.Contains(t.Shown(), text) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%q is not shown in time:\n%s", text, t.Shown())
		case <-over: // what it showed last may have come since
			if over = nil; !strings.Contains(t.Shown(), text) {
				return fmt.Errorf("the program has ended without %q:\n%s", text, t.Shown())
			}
		default:
		}
	}
}

// Enter types lines in.
func (t *Terminal) Enter(lines ...string) error {
	for _, line := range lines {
		if _, err := io.WriteString(t.in, line+"\n"); err != nil {
			return fmt.Errorf("enter line: %w", err)
		}
	}
	return nil
}

// End closes the program's input, waits for its end, and returns its exit status; -1 if it was killed.
func (t *Terminal) End() int {
	_ = t.in.Close() // an ended program's is closed
	<-t.over
	return t.cmd.ProcessState.ExitCode()
}

// Kill kills the program and waits for its end.
func (t *Terminal) Kill() {
	_ = t.cmd.Process.Kill() // it may have ended
	<-t.over
}
