package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tarry/server/runs"
)

func (a *app) showCommand() *cobra.Command {
	var name string
	var follow bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show where a run stands",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, st, err := a.find(cmd.Context(), name, args[0])
			if err != nil {
				return err
			}
			if follow {
				return a.watch(cmd.Context(), target{client: c, app: st.App, session: st.Session, invocation: st.Invocation})
			}
			if a.json {
				err = a.printJSON(st)
			} else {
				err = a.print("%s", description(st))
			}
			if err != nil {
				return err
			}
			if st.goesOn() {
				return ended(exitWaiting)
			}
			return ended(st.exit())
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "show the events so far and go on to the end")
	addAppFlag(cmd, &name)
	return cmd
}

func addAppFlag(cmd *cobra.Command, app *string) {
	cmd.Flags().StringVar(app, "app", "", "`name` of the agent, where several have a session of that id")
}

// description is the run in words.
func description(st *statusInfo) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			b.WriteString(name + strings.Repeat(" ", max(1, 12-len(name))) + value + "\n")
		}
	}
	line("session", st.Session)
	line("agent", st.App)
	line("state", inWords(&st.Run))
	if st.over() && !st.goesOn() {
		line("ended", st.InvocationStatus)
	}
	for _, w := range st.WaitingFor {
		line("waits for", wanted(&w)+" for "+subject(w.Tool, w.Toolset)+" of "+w.Agent)
		line("request", named(&w))
		line("asks", brief(w.Message))
		line("scopes", strings.Join(w.Scopes, " "))
		line("since", clock(w.Since))
		if !w.Deadline.IsZero() {
			line("until", clock(w.Deadline))
		}
		if w.Reminders > 0 {
			line("reminded", fmt.Sprintf("%d times, last %s", w.Reminders, clock(w.LastReminded)))
		}
		line("call", w.Call)
		line("link", w.Link)
	}
	line("error", st.Error)
	if st.Answer != "" {
		b.WriteString("answer\n" + st.Answer + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// named is the id by which what is waited for is answered, where a command takes one.
func named(w *runs.Waiting) string {
	if w.Kind == kindQuestion || w.Kind == kindResult {
		return w.Request
	}
	return ""
}

func inWords(r *runs.Run) string { return strings.ReplaceAll(r.State, "_", " ") }
