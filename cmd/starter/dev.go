package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tarry/internal/stack"
)

// devOptions are the flags of dev.
type devOptions struct {
	agents, data, bin string
	port              int
}

func (a *app) devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Run everything on this machine, with the agents in DIR",
		Long: `Starts a Temporal server, a worker and an HTTP server on this machine, with the agents in the folders below DIR (the
working directory if none is named). What they keep lies in DIR/.tarry. Model keys (GEMINI_API_KEY, OPENAI_API_KEY …)
and TARRY_… variables are passed on. Ctrl-C stops everything; the next start goes on where runs were.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agents = "."
			if len(args) > 0 {
				o.agents = args[0]
			}
			return a.dev(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.port, "port", 8080, "`port` of the HTTP server")
	flags.StringVar(&o.data, "data", "", "`directory` of databases, keys and logs (default DIR/.tarry)")
	flags.StringVar(&o.bin, "bin", "", "`directory` of the programs devserver, worker and server (default beside this one)")
	return cmd
}

func (a *app) dev(ctx context.Context, o devOptions) (err error) {
	if info, err := os.Stat(o.agents); err != nil || !info.IsDir() {
		return unusable("%s is not a directory: name the one that holds your agents' folders", o.agents)
	}
	if o.data == "" {
		o.data = filepath.Join(o.agents, ".tarry")
	}
	bin, err := programs(o.bin)
	if err != nil {
		return failed("%w", err)
	}
	s, err := stack.New(ctx, stack.Config{
		Dir: o.data, Bin: bin, AgentsDir: o.agents, PublicPort: o.port, Log: a.stderr,
		Base: a.base(), Env: ownVariables(), WorkerEnv: a.pass(modelKeys()...),
	})
	switch {
	case errors.Is(err, stack.ErrPortTaken):
		return unusable("%w; choose another with --port", err)
	case err != nil:
		return unusable("%w", err)
	}
	defer func() {
		if closing := s.Close(); closing != nil {
			err = errors.Join(err, failed("stop: %w", closing))
		}
	}()
	if err := s.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return failed("%w", err)
	}
	if err := a.announce(ctx, s, o); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		a.say("stopping; waiting runs go on waiting and are there again at the next start")
		return nil
	case err := <-s.Failed():
		return failed("%w", err)
	}
}

// announce says how to use what runs.
func (a *app) announce(ctx context.Context, s *stack.Stack, o devOptions) error {
	apps, err := newClient(s.URL(), a.user, nil).apps(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{
			"server": s.URL(), "worker": "http://" + s.Addr(stack.Worker), "temporal": s.Addr(stack.Temporal),
			"agents": append([]string{}, apps...), "redirect_uri": s.URL() + "/oauth/callback/<digest of the issuer>", "data": o.data,
		})
	}
	flag := ""
	if s.URL() != defaultServer {
		flag = " --server " + s.URL()
	}
	name := "AGENT"
	if len(apps) > 0 {
		name = apps[0]
	}
	return a.print(`
server         %s
agents         %s
run one        starter run %s "TASK"%s
redirect URI   %s/oauth/callback/<digest of the issuer>; the server's log lists those in use
Temporal       %s, namespace default
data and logs  %s
Ctrl-C stops everything.`, s.URL(), orNone(apps), name, flag, s.URL(), s.Addr(stack.Temporal), o.data)
}

// ownVariables are Tarry's own in the environment, and the secrets that agents' files refer to. What the stack decides is
// not among them.
func ownVariables() []string {
	var out []string
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		switch name {
		case "TARRY_SERVER", "TARRY_DATABASE_URL", "TARRY_DATA_DIR", "TARRY_AGENTS_DIR", "TARRY_HTTP_ADDR", "TARRY_ADMIN_ADDR", "TARRY_PUBLIC_URL":
			continue
		}
		if strings.HasPrefix(name, "TARRY_") {
			out = append(out, setting)
		}
	}
	return out
}
