package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	scriptModel = "scripted/script"
	demoApp     = "planner"
	demoTask    = "Plan the next release."
)

// demoOptions are the flags of demo.
type demoOptions struct {
	auto, keep         bool
	model, agents, bin string
}

// scripted says that the model is the script, whose answers are known.
func (o demoOptions) scripted() bool { return o.model == scriptModel }

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play the whole story: a login that outlives every process",
		Long: `Starts everything in a temporary directory, runs a loop of agents until it needs a login, kills every process, starts
them again, logs in while the worker is down, and checks what came of it. Exits 0 only if everything held.
In a terminal you are the one who logs in; with --auto, or elsewhere, a browser without a screen is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.auto = o.auto || !isTerminal(a.stdout)
			return a.demo(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.auto, "auto", false, "log in without a person")
	flags.BoolVar(&o.keep, "keep", false, "keep databases, logs and history")
	flags.StringVar(&o.model, "model", scriptModel, "`name` of the model, such as gemini/gemini-2.5-flash; its key comes from the environment")
	flags.StringVar(&o.agents, "agents", "", "`directory` of the planner's files (default examples/planner, here or beside this program's directory)")
	flags.StringVar(&o.bin, "bin", "", "`directory` of the programs devserver, worker and server (default beside this one)")
	return cmd
}

// demo plays the scenes in order and then says what held.
func (a *app) demo(ctx context.Context, o demoOptions) (err error) {
	if err := a.prepare(&o); err != nil {
		return err
	}
	s := &stage{app: a, options: o, begun: time.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.open(ctx, cancel); err != nil {
		return errors.Join(err, s.close(false))
	}
	for _, scene := range []func(context.Context) error{s.start, s.begin, s.ask, s.crash, s.login, s.finish} {
		if err = scene(ctx); err != nil {
			break
		}
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	closing := s.close(err != nil && !errors.Is(err, context.Canceled))
	switch {
	case errors.Is(err, context.Canceled):
		a.say("stopped; no process is left")
		return errors.Join(ended(exitCancelled), closing)
	case err != nil:
		var known *statusError
		if !errors.As(err, &known) {
			err = failed("%w", err)
		}
		return errors.Join(err, closing)
	case closing != nil:
		return failed("%w", closing)
	}
	return s.verdict()
}

// prepare finds the agents and checks that the model can be used.
func (a *app) prepare(o *demoOptions) error {
	bin, err := programs(o.bin)
	if err != nil {
		return failed("%w", err)
	}
	o.bin = bin
	candidates := []string{o.agents}
	if o.agents == "" {
		candidates = []string{filepath.Join("examples", demoApp), filepath.Join(bin, "..", "examples", demoApp)}
	}
	o.agents = ""
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "root_agent.yaml")); err == nil {
			o.agents = dir
			break
		}
	}
	if o.agents == "" {
		return unusable("there are no agents in %s: run this in the repository, or name examples/planner with --agents", strings.Join(candidates, " or "))
	}
	switch {
	case strings.HasPrefix(o.model, "gemini/") && len(a.pass("GEMINI_API_KEY", "GOOGLE_API_KEY")) == 0:
		return unusable("model %s needs GEMINI_API_KEY in the environment", o.model)
	case strings.HasPrefix(o.model, "openai/") && len(a.pass("OPENAI_API_KEY", "OPENAI_BASE_URL")) == 0:
		return unusable("model %s needs OPENAI_API_KEY in the environment", o.model)
	case strings.ContainsAny(o.model, ",="):
		return unusable("model %q is not a name such as %s", o.model, scriptModel)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// elapsed is mm:ss.mmm.
func elapsed(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d.%03d", int(d.Minutes()), int(d.Seconds())%60, d.Milliseconds()%1000)
}
