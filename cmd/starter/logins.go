package main

import (
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) loginsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "logins",
		Short: "List the logins that runs wait for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			logins, err := c.logins(cmd.Context(), all)
			if err != nil {
				return err
			}
			status := exitDone
			rows := [][]string{{"STATUS", "AGENT", "PROVIDER", "FOR", "SCOPES", "SINCE", "LINK"}}
			for _, l := range logins {
				link := l.Link
				if l.Status.Open() {
					status = exitWaiting
				} else {
					link = ""
				}
				rows = append(rows, []string{
					string(l.Status), l.App, l.Provider, subject(l.Tool, l.Toolset), strings.Join(l.Scopes, " "), clock(l.Created), link,
				})
			}
			if err := a.table(rows, logins, "no logins"); err != nil {
				return err
			}
			return ended(status)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list also those that are over")
	return cmd
}
