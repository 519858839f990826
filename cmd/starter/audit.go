package main

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/server/accounts"
)

const (
	formatJSONL = "jsonl"
	formatCSV   = "csv"
	// followEvery is how often an audit log that is followed is asked for what is new.
	followEvery = time.Second
)

// auditOptions are what is read, and how it is written.
type auditOptions struct {
	app, action, since, until, after, format string
	everyone, follow                         bool
}

func (a *app) auditCommand() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Export the audit log",
		Long: `Exports the audit log, oldest first: who was asked for what, what was granted, denied, refused and revoked and by whom, and which
run used it. No row holds a secret. The last line on standard error names the cursor for --after, with which a later export goes on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			query, err := o.query(c.user, time.Now())
			if err != nil {
				return err
			}
			write, err := a.auditWriter(o.format)
			if err != nil {
				return err
			}
			next, err := c.audit(cmd.Context(), query, o.follow, write)
			if next != "" {
				a.say("go on with --after %s", next)
			}
			if o.follow && errors.Is(err, context.Canceled) { // that is how it ends
				err = nil
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.app, "app", "", "only of the app of this `name`")
	flags.StringVar(&o.action, "action", "", "only this `action`, such as granted or refused")
	flags.StringVar(&o.since, "since", "", "not before this `time`: 2026-03-01, 2026-03-01T12:00:00Z, or 24h for a day ago")
	flags.StringVar(&o.until, "until", "", "before this `time`")
	flags.StringVar(&o.after, "after", "", "`cursor` of an earlier export: only what came after it")
	flags.StringVar(&o.format, "format", formatJSONL, "`format`: jsonl or csv")
	flags.BoolVar(&o.everyone, "everyone", false, "of all users, for who may act for all of them; --user is ignored")
	flags.BoolVar(&o.follow, "follow", false, "go on with what comes, until interrupted")
	return cmd
}

func (o auditOptions) query(user string, now time.Time) (url.Values, error) {
	q := url.Values{"limit": {"1000"}}
	if !o.everyone {
		q.Set("user", user)
	}
	for name, value := range map[string]string{"app": o.app, "action": o.action, "after": o.after} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, text := range map[string]string{"since": o.since, "until": o.until} {
		if text == "" {
			continue
		}
		t, ok := moment(text, now)
		if !ok {
			return nil, unusable("--%s %q is not a time such as 2026-03-01, 2026-03-01T12:00:00Z or 24h", name, text)
		}
		q.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
	return q, nil
}

// moment reads a date, which begins at midnight here, a time, or how long ago.
func moment(text string, now time.Time) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, true
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return t, true
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	return time.Time{}, false
}

// audit writes what query selects, and returns the cursor behind the last entry that was written.
func (c *client) audit(ctx context.Context, query url.Values, follow bool, write func([]accounts.Entry) error) (next string, err error) {
	for {
		var page accounts.Log
		if err := c.call(ctx, http.MethodGet, "/audit", query, nil, &page); err != nil {
			return next, err
		}
		if err := write(page.Entries); err != nil {
			return next, err
		}
		next = page.Next
		query.Set("after", next)
		if page.More {
			continue
		}
		if !follow {
			return next, nil
		}
		wait := time.NewTimer(followEvery)
		select {
		case <-ctx.Done():
			wait.Stop()
			return next, ctx.Err() //nolint:wrapcheck // the caller branches on it
		case <-wait.C:
		}
	}
}

func (a *app) auditWriter(format string) (func([]accounts.Entry) error, error) {
	switch format {
	case formatJSONL:
		return func(entries []accounts.Entry) error {
			for i := range entries {
				if err := a.printJSON(entries[i]); err != nil {
					return err
				}
			}
			return nil
		}, nil
	case formatCSV:
		header := true
		return func(entries []accounts.Entry) error {
			w := csv.NewWriter(a.stdout)
			if header {
				header = false
				_ = w.Write([]string{"at", "app", "user", "session", "request", "action", "detail", "actor"}) // Flush says
			}
			for i := range entries {
				e := &entries[i]
				row := []string{e.At.UTC().Format(time.RFC3339Nano)}
				for _, text := range []string{e.App, e.User, e.Session, e.Request, e.Action, e.Detail, e.Actor} {
					row = append(row, cell(text))
				}
				_ = w.Write(row) // Flush says
			}
			w.Flush()
			if err := w.Error(); err != nil {
				return failed("write: %w", err)
			}
			return nil
		}, nil
	}
	return nil, unusable("--format %q is neither %s nor %s", format, formatJSONL, formatCSV)
}

// cell keeps a spreadsheet from taking a text for a formula (OWASP, "CSV Injection"): names of agents and tools are other
// people's. What begins like one gets an apostrophe, which spreadsheets do not show; full-width signs count, since some
// fold them.
func cell(text string) string {
	text = strings.NewReplacer("\n", " ", "\t", " ").Replace(harmless(text))
	if strings.IndexAny(strings.TrimLeft(text, " \u00a0\ufeff\ufffd"), "=+-@|%＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}
