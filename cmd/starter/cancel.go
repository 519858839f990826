package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) cancelCommand() *cobra.Command {
	var name, call string
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a run, or one tool call of it",
		Long: "Cancels a run. With --call, cancels that tool call alone: the model is told, and goes on with the results of the\n" +
			"other calls. `starter show SESSION` names the calls that wait, `starter show SESSION --follow --json` all of them.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, st, err := a.find(cmd.Context(), name, args[0])
			if err != nil {
				return err
			}
			if call != "" {
				return a.cancelCall(cmd.Context(), c, st, call)
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
	cmd.Flags().StringVar(&call, "call", "", "`id` of the tool call to cancel; the run goes on")
	addAppFlag(cmd, &name)
	return cmd
}

func (a *app) cancelCall(ctx context.Context, c *client, st *statusInfo, call string) error {
	if err := c.cancelCall(ctx, st.App, st.Session, call); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"app": st.App, "session": st.Session, "call": call})
	}
	a.say("asked to cancel call %s; `starter show %s` says how the run goes on", call, st.Session)
	return nil
}
