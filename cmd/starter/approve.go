package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"tarry/server/runs"
)

const kindConfirmation = "confirmation"

func (a *app) approveCommand() *cobra.Command {
	var name, request string
	var reject bool
	cmd := &cobra.Command{
		Use:   "approve SESSION",
		Short: "Approve a call that waits for it, or reject it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, st, err := a.find(cmd.Context(), name, args[0])
			if err != nil {
				return err
			}
			w, err := toApprove(st, request)
			if err != nil {
				return err
			}
			a.say("%s calls %s %s", w.Agent, w.Tool, visible(string(w.Arguments)))
			out, err := c.confirm(cmd.Context(), st.App, st.Session, w.Request, !reject)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			a.say("%s; `starter show %s --follow` shows how the run goes on", map[bool]string{false: "approved", true: "rejected"}[reject], st.Session)
			return nil
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the call instead")
	cmd.Flags().StringVar(&request, "request", "", "`id` of the request, where several calls wait")
	addAppFlag(cmd, &name)
	return cmd
}

// toApprove chooses what is answered: an approval must not go to another call than the one that was meant.
func toApprove(st *statusInfo, request string) (*runs.Waiting, error) {
	var found []*runs.Waiting
	var ids []string
	for i := range st.WaitingFor {
		if w := &st.WaitingFor[i]; w.Kind == kindConfirmation && (request == "" || w.Request == request) {
			found, ids = append(found, w), append(ids, w.Request+" ("+w.Tool+" "+brief(string(w.Arguments))+")")
		}
	}
	switch {
	case len(found) == 0 && request != "":
		return nil, unusable("no call of session %s waits for approval under the request %q", st.Session, request)
	case len(found) == 0:
		return nil, unusable("no call of session %s waits for approval", st.Session)
	case len(found) > 1:
		return nil, unusable("several calls of session %s wait for approval: choose with --request %s", st.Session, strings.Join(ids, " or --request "))
	}
	return found[0], nil
}

// visible shows a text whole, with the characters by number that would change how a terminal shows the rest.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
