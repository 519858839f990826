package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tarry/internal/process"
)

// options of a measurement.
type options struct {
	bin, out string
	sizes    []size
	keep     bool
	profile  string
	// idempotent makes the tool one that may be called again after a crash.
	idempotent bool
}

// size is a length of sessions: so many turns, measured so many times.
type size struct{ turns, rounds int }

func main() {
	// The stack starts its worker by that name.
	if filepath.Base(os.Args[0]) == string(roleWorker) {
		os.Exit(process.Program{Name: "bench worker", Usage: workerUsage, Run: work}.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == string(roleBare) {
		return workBare(ctx, args[1], args[2], os.Stdin)
	}
	o := options{}
	sizes := ""
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin", "directory of devserver and server")
	flags.StringVar(&o.out, "out", "bench/results.json", "file of the results; empty writes none")
	flags.StringVar(&sizes, "turns", "10x40,100x8,1000x2", "lengths of sessions and how often each is run, as TURNSxROUNDS")
	flags.StringVar(&o.profile, "profile", "", "file of a CPU profile of Tarry's worker; empty writes none")
	flags.BoolVar(&o.idempotent, "idempotent", false, "let the tool be one that may be called again after a crash; its calls are not marked")
	flags.BoolVar(&o.keep, "keep", false, "keep databases and logs")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: there are only flags", flags.Args())
	}
	var err error
	if o.sizes, err = parseSizes(sizes); err != nil {
		return fmt.Errorf("read --turns: %w", err)
	}
	return measure(ctx, o)
}

func parseSizes(text string) (out []size, err error) {
	for part := range strings.SplitSeq(text, ",") {
		turns, rounds, _ := strings.Cut(part, "x")
		var s size
		if s.turns, err = strconv.Atoi(turns); err == nil {
			s.rounds, err = strconv.Atoi(rounds)
		}
		if err != nil || s.turns < 2 || s.rounds < 1 {
			return nil, fmt.Errorf("%q is not a length such as 100x4: at least 2 turns, at least once", part)
		}
		if s.turns > perMessage && s.turns%perMessage != 0 {
			return nil, fmt.Errorf("%q: more than %d turns must be a multiple of %d", part, perMessage, perMessage)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, errors.New("no length")
	}
	return out, nil
}
