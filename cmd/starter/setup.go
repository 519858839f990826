package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tarry/auth"
	"tarry/cmd/internal/dial"
	"tarry/engine"
)

func (a *app) setupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Register Tarry's search attributes in a Temporal namespace",
		Long: `Registers Tarry's search attributes in the namespace that Temporal's environment variables name (TEMPORAL_ADDRESS,
TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS…). Runs work without; they can be searched for with them. It may be
run again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := dial.Options()
			if err != nil {
				return unusable("%w", err)
			}
			c, err := dial.Temporal(cmd.Context(), slog.New(slog.DiscardHandler), nil)
			if err != nil {
				return unusable("%w", err)
			}
			defer c.Close()
			// Nothing is started, so the key that workflow ids are made with does not matter.
			e, err := engine.New(engine.Config{Client: c, UserKey: auth.NewSecret(strings.Repeat("x", 32))})
			if err != nil {
				return failed("set up: %w", err)
			}
			names, err := e.Setup(cmd.Context(), options.Namespace)
			if err != nil {
				return failed("namespace %s: %w", options.Namespace, err)
			}
			slices.Sort(names)
			switch {
			case a.json:
				return a.printJSON(map[string]any{"namespace": options.Namespace, "added": append([]string{}, names...)})
			case len(names) == 0:
				a.say("namespace %s has the search attributes already", options.Namespace)
			default:
				a.say("namespace %s: added %s", options.Namespace, strings.Join(names, ", "))
			}
			return nil
		},
	}
}
