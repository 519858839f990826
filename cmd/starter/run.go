package main

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tarry/server/runs"
)

func (a *app) runCommand() *cobra.Command {
	var detach, chat bool
	var session string
	cmd := &cobra.Command{
		Use:   `run AGENT "TASK"`,
		Short: "Start a run and follow it",
		Long: `Starts a run of an agent and follows it to its end: the answer goes to standard output, progress to standard
error. Where a login is needed the link is shown, and the run goes on when somebody has logged in.
Ctrl-C leaves the run alone.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := runs.Start{Task: args[1], Mode: "job", Session: session}
			if chat {
				request.Mode = "chat"
			}
			return a.runAgent(cmd.Context(), args[0], request, detach)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&detach, "detach", false, "do not follow the run")
	flags.BoolVar(&chat, "chat", false, "keep the session open for further messages")
	flags.StringVar(&session, "session", "", "`id` of the session: a new one, or with --chat one to go on with")
	return cmd
}

func (a *app) runAgent(ctx context.Context, agent string, request runs.Start, detach bool) error {
	if strings.TrimSpace(request.Task) == "" {
		return unusable("the task is empty: say what the agent should do")
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	run, err := c.start(ctx, agent, request)
	if isStatus(err, http.StatusNotFound) {
		if apps, listing := c.apps(ctx); listing == nil && !slices.Contains(apps, agent) {
			return unusable("there is no agent %q; the server has: %s", agent, orNone(apps))
		}
	}
	if err != nil {
		return err
	}
	if detach {
		if a.json {
			err = a.printJSON(run)
		} else {
			err = a.print("%s", run.Session)
			a.say("the run goes on. Follow it with: starter show %s --follow", run.Session)
		}
		if err != nil {
			return err
		}
		return ended(exitWaiting)
	}
	a.say("session %s", run.Session)
	return a.watch(ctx, target{client: c, app: agent, session: run.Session, invocation: run.Invocation})
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
