package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"tarry/store"
)

func (a *app) webhooksCommand() *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List the webhooks that have not been delivered",
		Long: `Reads the database itself, which the variables of worker and server name (TARRY_DATABASE_URL,
TARRY_DATABASE_PASSWORD_FILE).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, err := a.database()
			if err != nil {
				return err
			}
			s, err := store.Open(cmd.Context(), c.DatabaseURL.Reveal())
			if err != nil {
				return unusable("open database: %w", err)
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			list, err := s.Webhooks(cmd.Context(), all, limit)
			if err != nil {
				return failed("list webhooks: %w", err)
			}
			rows := [][]string{{"STATUS", "ENDPOINT", "TYPE", "REQUEST", "ATTEMPTS", "REASON", "SINCE", "NEXT", "ID"}}
			for _, w := range list {
				rows = append(rows, []string{
					string(w.Status), w.Endpoint, w.Type, w.Request, strconv.Itoa(w.Attempts), w.Reason, clock(w.Created), clock(w.Due), w.ID,
				})
			}
			return a.table(rows, list, "no webhooks wait or failed")
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list also those that were delivered")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many, newest first")
	return cmd
}
