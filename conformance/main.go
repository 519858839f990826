package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// options of a run of the suite.
type options struct {
	bin, npm string
	only     string
	round    int
	keep     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "client" {
		return play(ctx, args[1], clientSettings())
	}
	o := options{}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin", "directory of devserver, worker and server")
	flags.StringVar(&o.npm, "npm", "bin/npm", "directory of Node.js and of the installed suite, as .ci/npm makes it")
	flags.StringVar(&o.only, "only", "", "run only the scenarios that this regular expression matches, as REVISION/SCENARIO")
	flags.IntVar(&o.round, "round", 8, "number of scenarios that run at the same time")
	flags.BoolVar(&o.keep, "keep", false, "keep logs and results when everything has passed")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read --only: %w", err)
	}
	if o.round < 1 || flags.NArg() > 0 {
		return errors.New("usage: conformance [flags], or conformance client URL; --round is at least 1")
	}
	return conform(ctx, o, only)
}

// errFailed says that something did not pass, which has been printed.
var errFailed = errors.New("not passed")

// conform runs the scenarios and says how they ended.
func conform(ctx context.Context, o options, only *regexp.Regexp) error {
	s, err := newSuite(o.npm)
	if err != nil {
		return err
	}
	all, err := s.scenarios(ctx)
	if err != nil {
		return err
	}
	chosen := choose(all, only)
	if len(chosen) == 0 {
		return errors.New("--only matches no scenario")
	}
	svc, err := newService(ctx, o.bin)
	if err != nil {
		return err
	}
	r := newReport(os.Stdout, chosen)
	err = runRounds(ctx, s, svc, r, chosen, o.round)
	err = errors.Join(err, svc.close(o.keep || err != nil || !r.good()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // before the verdict, which is the last line
	}
	r.verdict()
	if err != nil || !r.good() {
		return errFailed
	}
	return nil
}
