package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tarry/replay"
)

func (a *app) replayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE…",
		Short: "Run histories against this program's workflow code",
		Long: `Runs histories, as starter export writes them, against the workflow code of this program, and says whether it would
decide as the history shows. Needs neither server nor Temporal.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			status := exitDone
			for _, file := range args {
				code, err := a.replayFile(cmd.Context(), file)
				if err != nil {
					return err
				}
				status = max(status, code)
			}
			return ended(status)
		},
	}
}

// replayFile returns the status that a file leads to; an error is one of writing.
func (a *app) replayFile(ctx context.Context, file string) (int, error) {
	result, err := replay.File(ctx, file)
	out := struct {
		File       string `json:"file"`
		Events     int    `json:"events"`
		Activities int    `json:"activities"`
		Error      string `json:"error,omitempty"`
	}{File: file, Events: result.Events, Activities: result.Activities}
	status := exitDone
	switch {
	case errors.Is(err, replay.ErrMismatch):
		status, out.Error = exitFailed, err.Error()
	case err != nil:
		status, out.Error = exitUnusable, err.Error()
	}
	switch {
	case a.json:
		return status, a.printJSON(out)
	case err != nil:
		a.say("starter: %s", brief(err.Error()))
		return status, nil
	default:
		return status, a.print("%s: fits, %d events, %d activities", file, out.Events, out.Activities)
	}
}
