package main

import "github.com/spf13/cobra"

func (a *app) cancelCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a run",
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
			if err := c.cancel(cmd.Context(), st.App, st.Session); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"app": st.App, "session": st.Session, "invocation": st.Invocation})
			}
			a.say("asked to cancel; `starter show %s` says when it has ended", st.Session)
			return nil
		},
	}
	addAppFlag(cmd, &name)
	return cmd
}
