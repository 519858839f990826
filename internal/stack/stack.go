package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
)

// Stack is the three processes. It is safe for concurrent use; one call that starts or ends processes runs at a time.
type Stack struct {
	cfg    Config
	ports  map[Name]int
	failed chan error

	turn      sync.Mutex // held while processes start or end
	mu        sync.Mutex // guards what follows
	closed    bool
	held      map[Name]net.Listener
	processes map[Name]*process
}

// New prepares a stack: its directory and its ports. Nothing runs yet. A port that is taken is an error.
func New(ctx context.Context, cfg Config) (*Stack, error) {
	cfg = cfg.withDefaults()
	if err := cfg.absolute(); err != nil {
		return nil, err
	}
	for _, program := range []string{"devserver", "worker", "server"} {
		if _, err := os.Stat(cfg.Bin + "/" + program); err != nil {
			return nil, fmt.Errorf("find program %s (build it into %s first): %w", program, cfg.Bin, err)
		}
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	s := &Stack{
		cfg: cfg, ports: map[Name]int{}, failed: make(chan error, 1),
		held: map[Name]net.Listener{}, processes: map[Name]*process{},
	}
	for _, name := range everything() {
		port := 0
		if name == Server {
			port = cfg.PublicPort
		}
		listener, port, err := reserve(ctx, port)
		if err != nil {
			s.releaseAll()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.held[name], s.ports[name] = listener, port
	}
	return s, nil
}

// Start starts processes in the order of [All] and returns when each is ready; without names all of them. One that runs
// already is left alone.
func (s *Stack) Start(ctx context.Context, names ...Name) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if len(names) == 0 {
		names = All()
	}
	for _, name := range ordered(names) {
		if err := s.start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// StartTogether is Start of processes that do not wait for each other to be ready.
func (s *Stack) StartTogether(ctx context.Context, names ...Name) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	var started []*process
	var errs []error
	for _, name := range ordered(names) {
		p, err := s.launch(name)
		errs = append(errs, err)
		if p != nil {
			started = append(started, p)
		}
	}
	for _, p := range started {
		errs = append(errs, s.ready(ctx, p))
	}
	return errors.Join(errs...)
}

func (s *Stack) start(ctx context.Context, name Name) error {
	p, err := s.launch(name)
	if p == nil {
		return err
	}
	return s.ready(ctx, p)
}

// launch starts a process, unless it runs: nil then.
func (s *Stack) launch(name Name) (*process, error) {
	if s.running(name) != nil {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if s.isClosed() {
		return nil, errors.New("stack: closed")
	}
	s.release(name)
	path, args, env := s.program(name)
	p, err := launch(name, s.LogFile(name), path, args, env)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.processes[name] = p
	s.mu.Unlock()
	return p, nil
}

func (s *Stack) ready(ctx context.Context, p *process) error {
	if err := p.waitReady(ctx, s.cfg.ReadyTimeout); err != nil {
		return errors.Join(err, p.kill())
	}
	s.say("%s is ready at %s, pid %d", p.name, s.Addr(p.name), p.cmd.Process.Pid)
	go s.watch(p)
	return nil
}

// watch reports the first end that nobody asked for.
func (s *Stack) watch(p *process) {
	<-p.done
	if p.expected() {
		return
	}
	select {
	case s.failed <- p.ended():
	default:
	}
}

// Failed gets the first error of a process that was ready and ended without having been asked to.
func (s *Stack) Failed() <-chan error { return s.failed }

// Stop asks processes to end (SIGTERM), the last started first, and returns when they are gone; without names all of
// them. One that does not end in time is killed, which is an error.
func (s *Stack) Stop(names ...Name) error {
	return s.end(names, "stopped", func(p *process) error { return p.stop(s.cfg.StopTimeout) })
}

// Kill ends processes at once (SIGKILL), and what they have started; without names all of them.
func (s *Stack) Kill(names ...Name) error {
	return s.end(names, "killed", (*process).kill)
}

func (s *Stack) end(names []Name, how string, end func(*process) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	list := ordered(names)
	slices.Reverse(list)
	var errs []error
	for _, name := range list {
		p := s.running(name)
		if p == nil {
			continue
		}
		errs = append(errs, end(p))
		s.say("%s %s, pid %d", name, how, p.cmd.Process.Pid)
	}
	return errors.Join(errs...)
}

// Restart is Stop and Start of the same processes.
func (s *Stack) Restart(ctx context.Context, names ...Name) error {
	return errors.Join(s.Stop(names...), s.Start(ctx, names...))
}

// Close stops everything; nothing can be started afterwards. It may be called more than once.
func (s *Stack) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.Stop()
	s.releaseAll()
	return err
}

// Pid is the process id, or 0 when the process does not run.
func (s *Stack) Pid(name Name) int {
	if p := s.running(name); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Done is closed when the current process of that name has ended; at once when there is none.
func (s *Stack) Done(name Name) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.processes[name]; ok {
		return p.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Addr is HOST:PORT of a process: Temporal's frontend, the worker's admin listener, the HTTP server. It never changes.
func (s *Stack) Addr(name Name) string {
	return net.JoinHostPort(host, strconv.Itoa(s.ports[name]))
}

// URL is that of the HTTP server.
func (s *Stack) URL() string { return "http://" + s.Addr(Server) }

// running returns the process if it has not ended.
func (s *Stack) running(name Name) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.processes[name]
	if !ok {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
		return p
	}
}

func (s *Stack) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// release gives a reserved port to the process that it is for.
func (s *Stack) release(name Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.held[name]; ok {
		_ = l.Close()
		delete(s.held, name)
	}
}

func (s *Stack) releaseAll() {
	for _, name := range everything() {
		s.release(name)
	}
}

func (s *Stack) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.cfg.Log, format+"\n", args...) // progress; nobody depends on it
}

// ordered sorts names as processes start; none means whatever there is.
func ordered(names []Name) []Name {
	var out []Name
	for _, name := range everything() {
		if len(names) == 0 || slices.Contains(names, name) {
			out = append(out, name)
		}
	}
	return out
}
