package stack

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Name of a process.
type Name string

// The processes, in the order in which they start.
const (
	Temporal Name = "temporal"
	Worker   Name = "worker"
	Server   Name = "server"
	// SecondWorker is one more worker, started only by its name and stopped with the others.
	SecondWorker Name = "worker2"
	// SecondServer is the same of the HTTP server. It serves the same public URL, which leads to the first.
	SecondServer Name = "server2"
)

// All returns the names of the processes that make a stack, in the order in which they start.
func All() []Name { return []Name{Temporal, Worker, Server} }

func everything() []Name { return append(All(), SecondWorker, SecondServer) }

// Config of a [Stack].
type Config struct {
	// Dir holds databases, keys and, below log, the processes' output. It is made if it does not exist.
	Dir string
	// Bin is the directory of the programs devserver, worker and server.
	Bin string
	// AgentsDir is the directory of agent definitions; empty means none.
	AgentsDir string
	// Base is the environment that every process gets, such as PATH and HOME, as NAME=VALUE.
	Base []string
	// Env is added for worker and server and wins over what the stack sets.
	Env []string
	// WorkerEnv is added for the worker alone: model keys are no business of the server's.
	WorkerEnv []string
	// PublicPort is the HTTP server's; 0 means a free one.
	PublicPort int
	// TemporalArgs are added to the dev server's command line.
	TemporalArgs []string
	// Namespace in Temporal; empty means "default".
	Namespace string
	// Log gets a line for each process that starts or ends; nil means none.
	Log io.Writer
	// ReadyTimeout bounds the wait for one process to be ready; 0 means one minute.
	ReadyTimeout time.Duration
	// StopTimeout is how long a process may take to end after SIGTERM before it is killed; 0 means 15 seconds.
	StopTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.ReadyTimeout == 0 {
		c.ReadyTimeout = time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 15 * time.Second
	}
	return c
}

// absolute makes the directories independent of a process's working directory.
func (c *Config) absolute() error {
	if c.Dir == "" || c.Bin == "" {
		return errors.New("stack: a data directory and a directory of programs are required")
	}
	for _, dir := range []*string{&c.Dir, &c.Bin, &c.AgentsDir} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("find %s: %w", *dir, err)
		}
		*dir = abs
	}
	return nil
}

// Database is the SQLite file of worker and server.
func (s *Stack) Database() string { return filepath.Join(s.cfg.Dir, "tarry.db") }

// TemporalDatabase is the SQLite file of the Temporal server.
func (s *Stack) TemporalDatabase() string { return filepath.Join(s.cfg.Dir, "temporal.db") }

// LogFile is where a process's output goes.
func (s *Stack) LogFile(name Name) string {
	return filepath.Join(s.cfg.Dir, "log", string(name)+".log")
}

// program returns what to run for a name.
func (s *Stack) program(name Name) (path string, args, env []string) {
	if name == Temporal {
		return filepath.Join(s.cfg.Bin, "devserver"), append([]string{
			"--db", s.TemporalDatabase(), "--ip", host, "--port", fmt.Sprint(s.ports[Temporal]), "--namespace", s.cfg.Namespace,
		}, s.cfg.TemporalArgs...), s.cfg.Base
	}
	own, program := s.cfg.Env, Server
	if name == Worker || name == SecondWorker {
		own, program = merge(own, s.cfg.WorkerEnv), Worker
	}
	return filepath.Join(s.cfg.Bin, string(program)), nil, merge(s.cfg.Base, s.variables(name), own)
}

func (s *Stack) variables(name Name) []string {
	env := []string{
		"TEMPORAL_ADDRESS=" + s.Addr(Temporal),
		"TEMPORAL_NAMESPACE=" + s.cfg.Namespace,
		"TARRY_DATABASE_URL=" + s.Database(),
		"TARRY_DATA_DIR=" + s.cfg.Dir,
		"TARRY_PUBLIC_URL=" + s.URL(),
		"TARRY_DEV=true",
	}
	if s.cfg.AgentsDir != "" {
		env = append(env, "TARRY_AGENTS_DIR="+s.cfg.AgentsDir)
	}
	if name == Worker || name == SecondWorker {
		return append(env, "TARRY_ADMIN_ADDR="+s.Addr(name))
	}
	return append(env, "TARRY_HTTP_ADDR="+s.Addr(name))
}
