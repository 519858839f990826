package main

import (
	"os"

	"github.com/spf13/cobra"
)

func (a *app) exportCommand() *cobra.Command {
	var name, file string
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a run's Temporal history as JSON, for starter replay",
		Long:  "Writes the Temporal history of a run as JSON: ids, names and counts, neither what was said nor any secret.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			st, err := c.find(cmd.Context(), name, args[0])
			if err != nil {
				return err
			}
			history, err := c.history(cmd.Context(), st.App, st.Session)
			if err != nil {
				return err
			}
			if file == "" {
				return a.print("%s", history)
			}
			if err := os.WriteFile(file, append(history, '\n'), 0o600); err != nil {
				return unusable("write history: %w", err)
			}
			a.say("history written to %s", file)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "`file` to write; standard output if none is named")
	addAppFlag(cmd, &name)
	return cmd
}
