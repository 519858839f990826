package process

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Program is a process that is configured by its environment alone.
type Program struct {
	Name  string
	Usage func() string
	// Run works until ctx ends, which is no error.
	Run func(ctx context.Context, e Environment) error
	// Addr is HOST:PORT of the program's listener, which has the route /readyz: the argument "health" asks it.
	Addr func(e Environment) string
}

// Environment is what a [Program] sees of the outside.
type Environment struct {
	Lookup func(string) (string, bool)
	Stdout io.Writer
	Log    *slog.Logger
}

// Get returns a variable's value, or fallback where it is unset or empty.
func (e Environment) Get(name, fallback string) string {
	if v, ok := e.Lookup(name); ok && v != "" {
		return v
	}
	return fallback
}

// Main runs the program as the operating system started it and returns its exit status: 0 when it was stopped by SIGINT or
// SIGTERM, 1 when it failed, 2 when it was called wrongly. Called with "health" it asks the one that runs with the same
// environment whether it is ready: 0 if so, else 1.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return p.main(ctx, os.Args[1:], Environment{Lookup: os.LookupEnv, Stdout: os.Stdout}, os.Stderr) //nolint:forbidigo // the one way in for cmd
}

func (p Program) main(ctx context.Context, args []string, e Environment, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "health" {
		return p.health(ctx, e, stderr)
	}
	if len(args) > 0 {
		fmt.Fprint(stderr, p.Usage())
		if args[0] == "-h" || args[0] == "--help" {
			return 0
		}
		return 2
	}
	var err error
	if e.Log, err = Logger(stderr, e.Get("TARRY_LOG_FORMAT", "json"), e.Get("TARRY_LOG_LEVEL", "info")); err == nil {
		err = p.Run(ctx, e)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

func (p Program) health(ctx context.Context, e Environment, stderr io.Writer) int {
	address, err := ready(p.Addr(e))
	if err == nil {
		err = Healthy(ctx, address)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}
