package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// stage is where the demo plays: the processes, the other side of the login, and what the scenes hand to each other.
type stage struct {
	*app
	options demoOptions
	begun   time.Time

	dir      string
	stack    *stack.Stack
	provider *demo.Provider
	mcp      *demo.MCPServer
	browser  *demo.Browser
	api      *client
	bodies   *recorder
	seen     []int // ids of all processes that ran

	target target
	last   int64 // sequence number of the last event that was shown
	link   string
	result *statusInfo
	checks []check
}

// tell writes a line of the story.
func (s *stage) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	at := elapsed(time.Since(s.begun))
	if s.json {
		_ = s.printJSON(map[string]string{"at": at, "text": text}) // the verdict's write says it
		return
	}
	_ = s.print("%s  %s", at, text) // as above
}

// scene writes a heading.
func (s *stage) scene(title string) {
	if s.json {
		s.tell("%s", title)
		return
	}
	_ = s.print("\n%s", title)
}

// open makes the directory and prepares the processes. A process that ends by itself ends the demo, through cancel.
func (s *stage) open(ctx context.Context, cancel context.CancelCauseFunc) (err error) {
	if s.dir, err = os.MkdirTemp("", "tarry-demo-"); err != nil {
		return failed("make directory: %w", err)
	}
	// A copy, so that neighbours of the example are not loaded.
	agents := filepath.Join(s.dir, "agents")
	if err := os.CopyFS(filepath.Join(agents, demoApp), os.DirFS(s.options.agents)); err != nil {
		return failed("copy agents: %w", err)
	}
	if err := s.otherSide(); err != nil { //nolint:contextcheck // the listeners last until they are closed
		return failed("%w", err)
	}
	s.stack, err = stack.New(ctx, stack.Config{
		Dir: filepath.Join(s.dir, "data"), Bin: s.options.bin, AgentsDir: agents, Base: s.base(),
		WorkerEnv: append(s.keys(),
			"TARRY_VARS=MODEL="+s.options.model+",MCP_URL="+s.mcp.URL(),
			"TARRY_SCRIPTS_DIR="+filepath.Join(agents, demoApp),
			"TARRY_SCRIPT_JOURNAL="+s.journalFile(),
		),
	})
	if err != nil {
		return unusable("%w", err)
	}
	s.bodies = &recorder{next: &http.Transport{}}
	s.api = newClient(s.stack.URL(), s.user, s.bodies)
	go func() {
		select {
		case err := <-s.stack.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return nil
}

func (s *stage) otherSide() (err error) {
	if s.provider, err = demo.NewProvider(demo.ProviderConfig{}); err != nil {
		return fmt.Errorf("make provider: %w", err)
	}
	if err = s.provider.Start(""); err != nil {
		return fmt.Errorf("start provider: %w", err)
	}
	if s.mcp, err = demo.NewMCPServer(demo.MCPConfig{Provider: s.provider}); err != nil {
		return fmt.Errorf("make MCP server: %w", err)
	}
	if err = s.mcp.Start(""); err != nil {
		return fmt.Errorf("start MCP server: %w", err)
	}
	s.browser = demo.NewBrowser()
	return nil
}

// keys are passed on only where the model needs them.
func (s *stage) keys() []string {
	if s.options.scripted() {
		return nil
	}
	return s.pass(modelKeys()...)
}

func (s *stage) journalFile() string { return filepath.Join(s.dir, "data", "script.jsonl") }

// close stops everything and removes what was kept, unless it is to be looked at: broken says that a scene went wrong.
func (s *stage) close(broken bool) error {
	var errs []error
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	if s.mcp != nil {
		errs = append(errs, s.mcp.Close())
	}
	if s.provider != nil {
		errs = append(errs, s.provider.Close())
	}
	left := 0
	for _, pid := range s.seen {
		if alive(pid) {
			left++
			errs = append(errs, fmt.Errorf("process %d is left behind", pid))
		}
	}
	s.check("processes left behind", left == 0, count(left))
	switch {
	case s.dir == "":
	case s.options.keep || broken || s.broken():
		s.say("databases, logs and history are in %s", s.dir)
	default:
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// note remembers the processes that run now.
func (s *stage) note() {
	for _, name := range stack.All() {
		if pid := s.stack.Pid(name); pid != 0 {
			s.seen = append(s.seen, pid)
		}
	}
}

const (
	look     = 50 * time.Millisecond
	patience = time.Minute
)

// until looks again and again until done says so; what names it in the error.
func until(ctx context.Context, limit time.Duration, what string, done func() (bool, error)) error {
	end := time.Now().Add(limit)
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if time.Now().After(end) {
			return failed("%s: not within %s", what, limit)
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}
