package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tarry/cmd/internal/dial"
	"tarry/replay"
)

func (a *app) replayCommand() *cobra.Command {
	var name string
	var open bool
	cmd := &cobra.Command{
		Use:   "replay [FILE|DIR|SESSION]…",
		Short: "Run histories against this program's workflow code",
		Long: `Runs histories against the workflow code of this program, and says whether it would decide as they show: those in
files, as starter export writes them, in every *.json below a folder, the latest of a session, or with --all-open those of
all sessions that are open in the namespace which Temporal's environment variables name. It changes nothing. Files and
folders need neither server nor Temporal, a session needs the server, --all-open needs Temporal.

This program has no custom agents. Sessions with some are replayed in a test of the program that has them: package replay.

Exit status:
  0  all fit
  1  some differ
  2  some could not be checked: no history, custom agents, wrong use, no server or Temporal`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !open {
				return unusable("nothing to replay: name files, folders or sessions, or say --all-open")
			}
			var all replay.Summary
			for _, arg := range args {
				some, err := a.replayed(cmd.Context(), name, arg)
				if err != nil {
					return err
				}
				all = append(all, some...)
			}
			if open {
				some, err := replayOpen(cmd.Context(), name)
				if err != nil {
					return err
				}
				all = append(all, some...)
			}
			return a.report(all)
		},
	}
	cmd.Flags().BoolVar(&open, "all-open", false, "also every session that is open: of the app that --app names, or of all")
	addAppFlag(cmd, &name)
	return cmd
}

// replayed replays what an argument names.
func (a *app) replayed(ctx context.Context, app, arg string) (replay.Summary, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		out, err := replay.Replayer{}.Dir(ctx, arg)
		if err != nil {
			return nil, unusable("%w", err)
		}
		return out, nil
	case err != nil && (!errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".json")):
		return replay.Summary{{Name: arg, Err: err}}, nil
	case err == nil:
		f, err := os.Open(arg)
		if err != nil {
			return replay.Summary{{Name: arg, Err: err}}, nil
		}
		defer func() { _ = f.Close() }() // it was only read
		result, err := replay.Replayer{}.Reader(ctx, f)
		return replay.Summary{{Name: arg, Result: result, Err: err}}, nil
	}
	c, st, err := a.find(ctx, app, arg)
	if err != nil {
		return nil, err
	}
	h, err := c.parsed(ctx, st.App, st.Session, "")
	if err != nil {
		return nil, err
	}
	result, err := replay.Replayer{}.History(ctx, h)
	return replay.Summary{{Name: arg, Result: result, Err: err}}, nil
}

// replayOpen asks Temporal: the server answers for one user only.
func replayOpen(ctx context.Context, app string) (replay.Summary, error) {
	options, err := dial.Options()
	if err != nil {
		return nil, unusable("%w", err)
	}
	c, err := dial.Temporal(ctx, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, unusable("%w", err)
	}
	defer c.Close()
	out, err := replay.Replayer{}.Running(ctx, c, options.Namespace, app)
	if err != nil {
		return nil, unusable("namespace %s: %w", options.Namespace, err)
	}
	return out, nil
}

// replayLine is one history in JSON.
type replayLine struct {
	Name string `json:"name"`
	Fits bool   `json:"fits"`
	replay.Result
	Error      string      `json:"error,omitempty"`
	Difference *difference `json:"difference,omitempty"`
}

// difference is where a history differs.
type difference struct {
	Event  int64    `json:"event,omitempty"`
	Then   string   `json:"then,omitempty"`
	Now    string   `json:"now,omitempty"`
	Fields []string `json:"fields,omitempty"`
	Agreed int      `json:"agreed"`
	Reason string   `json:"reason,omitempty"`
	SDK    string   `json:"sdk,omitempty"`
}

// report writes a line for each history and a summary.
func (a *app) report(all replay.Summary) error {
	for _, c := range all {
		if err := a.reportOne(c); err != nil {
			return err
		}
	}
	switch {
	case a.json:
	case len(all) == 0:
		a.say("no session is open")
	case len(all) > 1:
		a.say("%s", all)
	}
	switch {
	case all.Unusable() > 0:
		return ended(exitUnusable)
	case all.Differ() > 0:
		return ended(exitFailed)
	default:
		return nil
	}
}

func (a *app) reportOne(c replay.Checked) error {
	if !a.json {
		return a.print("%s: %s", c.Name, outcome(c))
	}
	line := replayLine{Name: c.Name, Fits: c.Err == nil, Result: c.Result}
	var d *replay.DifferenceError
	if errors.As(c.Err, &d) {
		line.Difference = &difference{Event: d.Event, Then: d.Then, Now: d.Now, Fields: d.Fields, Agreed: d.Agreed, Reason: d.Reason}
		if d.Cause != nil {
			line.Difference.SDK = d.Cause.Error()
		}
	}
	if c.Err != nil {
		line.Error = c.Err.Error()
	}
	return a.printJSON(line)
}

// outcome is one line of text.
func outcome(c replay.Checked) string {
	var path *fs.PathError
	switch {
	case c.Err == nil:
		return fmt.Sprintf("fits, %d events, %d activities", c.Events, c.Activities)
	case errors.As(c.Err, &path):
		return path.Err.Error()
	case c.Differs():
		return "differs: " + oneLine(c.Err.Error())
	default:
		return oneLine(c.Err.Error())
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
