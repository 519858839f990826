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
	"time"
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
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is open here
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

// conform runs the scenarios and says how they ended; an error means that something required did not pass.
func conform(ctx context.Context, o options, only *regexp.Regexp) (err error) {
	begun := time.Now()
	s, err := newSuite(o.npm)
	if err != nil {
		return err
	}
	all, err := s.scenarios(ctx)
	if err != nil {
		return err
	}
	svc, err := newService(ctx, o.bin)
	if err != nil {
		return err
	}
	r := &report{begun: begun}
	defer func() {
		err = errors.Join(err, svc.close(o.keep || err != nil))
		if err == nil {
			err = r.verdict()
		}
	}()
	return runRounds(ctx, s, svc, r, choose(all, only), o.round)
}
