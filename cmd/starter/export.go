package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"tarry/replay"
)

// export is what the command's flags say.
type export struct {
	app, file, run string
	chain, raw     bool
	values         bool
}

func (a *app) exportCommand() *cobra.Command {
	var o export
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a run's Temporal history as JSON, for starter replay",
		Long: `Writes the Temporal history of a session's latest run as JSON, fit to be kept as a fixture: it replays as the history
does, but ids are replaced, times are moved to the year 2000, and names of hosts, messages of failures and whatever else is
not needed are gone. Names of the app, its agents and tools stay. Where a custom agent decides by a text that it reads, the
fixture replays only with --keep-values.

With --chain also the runs before it, if the session continued as new, each in a file of its own.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.export(cmd.Context(), o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "output", "o", "", "`file` to write; standard output if none is named")
	flags.StringVar(&o.run, "run", "", "`id` of the run to write; the latest if none is named")
	flags.BoolVar(&o.chain, "chain", false, "also the runs before it: FILE_run1.json is the first, FILE.json the one that was asked for")
	flags.BoolVar(&o.raw, "raw", false, "as Temporal has it: with every id, host and time")
	flags.BoolVar(&o.values, "keep-values", false, "keep what custom agents read of state and of tools' results: it is content, and they may decide by it")
	addAppFlag(cmd, &o.app)
	return cmd
}

func (a *app) export(ctx context.Context, o export, session string) error {
	if o.chain && o.file == "" {
		return unusable("--chain writes several files: name the last with -o FILE")
	}
	c, st, err := a.find(ctx, o.app, session)
	if err != nil {
		return err
	}
	histories, err := a.chain(ctx, c, st, o)
	if err != nil {
		return err
	}
	if !o.raw {
		if histories, err = redacted(ctx, o, histories); err != nil {
			return err
		}
	}
	for i, h := range histories {
		body, err := encoded(h)
		if err != nil {
			return err
		}
		if o.file == "" {
			return a.print("%s", body)
		}
		file := o.file
		if i < len(histories)-1 {
			ext := filepath.Ext(file)
			file = strings.TrimSuffix(file, ext) + "_run" + strconv.Itoa(i+1) + ext
		}
		if err := os.WriteFile(file, append(body, '\n'), 0o600); err != nil {
			return unusable("write history: %w", err)
		}
		a.say("history written to %s", file)
	}
	return nil
}

// chain returns the history of the run that is asked for, and before it those of the runs that it continues, if they are
// wanted too.
func (a *app) chain(ctx context.Context, c *client, st *statusInfo, o export) ([]*historypb.History, error) {
	var out []*historypb.History
	for run := o.run; ; {
		h, err := c.parsed(ctx, st.App, st.Session, run)
		switch {
		case len(out) > 0 && isStatus(err, http.StatusNotFound):
			a.say("earlier runs are past their retention: %d of the chain are left", len(out))
			return out, nil
		case err != nil:
			return nil, err
		}
		out = append([]*historypb.History{h}, out...)
		if run = first(h).GetContinuedExecutionRunId(); !o.chain || run == "" {
			return out, nil
		}
	}
}

// first is how a run was started; nil if the history is empty, and its fields then are too.
func first(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	if len(h.GetEvents()) == 0 {
		return nil
	}
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
}

// parsed fetches a history; an empty run is the latest.
func (c *client) parsed(ctx context.Context, app, session, run string) (*historypb.History, error) {
	body, err := c.history(ctx, app, session, run)
	if err != nil {
		return nil, err
	}
	h, err := replay.Read(bytes.NewReader(body))
	if err != nil {
		return nil, failed("read answer of %s: %w", c.base, err)
	}
	return h, nil
}

// redacted makes fixtures that replay as well as the histories do.
func redacted(ctx context.Context, o export, histories []*historypb.History) ([]*historypb.History, error) {
	out, err := replay.Redaction{KeepValues: o.values}.Redact(histories...)
	if err != nil {
		return nil, failed("%w; --raw writes it as it is", err)
	}
	for i, h := range out {
		if _, err := replay.History(ctx, histories[i]); err != nil {
			continue // it would not replay either way, or has custom agents
		}
		if _, err := replay.History(ctx, h); err != nil {
			return nil, failed("the redacted history would not replay: %w; --raw writes it as it is", err)
		}
	}
	return out, nil
}

// encoded is the same each time: protojson varies its spaces.
func encoded(h *historypb.History) ([]byte, error) {
	body, err := protojson.Marshal(h)
	if err != nil {
		return nil, failed("encode history: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", " "); err != nil {
		return nil, failed("encode history: %w", err)
	}
	return out.Bytes(), nil
}
