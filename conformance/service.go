package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"tarry/internal/stack"
)

// metadataURL is the one that the suite knows as a client's; no scenario fetches it.
const metadataURL = "https://conformance-test.local/client-metadata.json"

// service is Tarry on this machine.
type service struct {
	*stack.Stack
	dir  string
	held []net.Listener
}

// newService starts everything but the worker, which starts when there are agents to publish.
func newService(ctx context.Context, bin string) (*service, error) {
	dir, err := os.MkdirTemp("", "tarry-conformance-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	s := &service{dir: dir}
	for _, sub := range []string{s.agents(), s.scripts(), s.secrets(), s.results()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, fmt.Errorf("make directory: %w", err)
		}
	}
	say(os.Stdout, "starting dev server and server")
	s.Stack, err = stack.New(ctx, stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: bin, AgentsDir: s.agents(),
		Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Env: []string{
			"TARRY_SCRIPTS_DIR=" + s.scripts(), "TARRY_SECRETS_DIR=" + s.secrets(),
			"TARRY_CLIENT_METADATA_URL=" + metadataURL, "TARRY_LOG_LEVEL=debug",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare service: %w", err)
	}
	if err := s.Start(ctx, stack.Temporal, stack.Server); err != nil {
		return nil, errors.Join(fmt.Errorf("start service: %w", err), s.close(true))
	}
	return s, nil
}

func (s *service) agents() string  { return filepath.Join(s.dir, "agents") }
func (s *service) scripts() string { return filepath.Join(s.dir, "scripts") }
func (s *service) secrets() string { return filepath.Join(s.dir, "secrets") }
func (s *service) results() string { return filepath.Join(s.dir, "results") }

// meet is what happens to the worker when all scenarios of a round have come to a point. At the end of the round it is
// killed, since some of the suite's servers do not end while a connection is open.
func (s *service) meet(ctx context.Context, points map[point]int) error {
	pid := s.Pid(stack.Worker)
	if err := s.Kill(stack.Worker); err != nil {
		return fmt.Errorf("kill worker: %w", err)
	}
	if n := points[asked]; n > 0 {
		say(os.Stdout, "worker %d is killed: %d runs wait for a person, who answers now", pid, n)
	}
	if points[published] == 0 && points[answered] == 0 {
		return nil
	}
	if err := s.Start(ctx, stack.Worker); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	if n := points[answered]; n > 0 {
		say(os.Stdout, "worker %d is started: %d runs go on", s.Pid(stack.Worker), n)
	}
	return nil
}

// hold keeps a port from being given to another scenario's server: what the service has learnt about an address would be
// true no longer. It listens on loopback only, which is in the way of whoever wants the port there or on all interfaces.
// What cannot be had is somebody else's already.
func (s *service) hold(ctx context.Context, port string) {
	var config net.ListenConfig
	for _, host := range []string{"127.0.0.1", "::1"} {
		if l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port)); err == nil {
			s.held = append(s.held, l)
		}
	}
}

// close stops the processes and removes what was kept, unless it is to be looked at.
func (s *service) close(keep bool) error {
	errs := []error{s.Close()}
	for _, l := range s.held {
		errs = append(errs, l.Close())
	}
	if keep {
		say(os.Stdout, "logs and results are in %s", s.dir)
	} else {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
