package main

import (
	"bytes"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tarry/server/runs"
)

func (a *app) listCommand() *cobra.Command {
	var name string
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs that go on or wait",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			runs, err := c.runs(cmd.Context(), name, all)
			if err != nil {
				return err
			}
			status := exitDone
			rows := [][]string{{"SESSION", "AGENT", "STATE", "SINCE", "WAITS FOR"}}
			for i := range runs {
				rows = append(rows, runRow(&runs[i]))
				if len(runs[i].WaitingFor) > 0 {
					status = exitWaiting
				}
			}
			if err := a.table(rows, runs, "no runs"); err != nil {
				return err
			}
			return ended(status)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list also those that have ended")
	addAppFlag(cmd, &name)
	return cmd
}

func runRow(r *runs.Run) []string {
	since, waits := r.Updated, make([]string, 0, len(r.WaitingFor))
	for i, w := range r.WaitingFor {
		if i == 0 || w.Since.Before(since) {
			since = w.Since
		}
		waits = append(waits, wanted(&w)+" for "+subject(w.Tool, w.Toolset))
	}
	return []string{r.Session, r.App, inWords(r), clock(since), strings.Join(waits, ", ")}
}

// table prints rows below their header, or with --json the values.
func (a *app) table(rows [][]string, values any, none string) error {
	if a.json {
		return a.printJSON(values)
	}
	if len(rows) == 1 {
		a.say("%s", none)
		return nil
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = w.Write([]byte(strings.Join(row, "\t") + "\n")) // to memory
	}
	_ = w.Flush() // as above
	var out []string
	for line := range strings.Lines(b.String()) {
		out = append(out, strings.TrimRight(line, " \n"))
	}
	return a.print("%s", strings.Join(out, "\n"))
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
