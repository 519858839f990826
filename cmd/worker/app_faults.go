//go:build faults

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/genai"

	"tarry"
	"tarry/tools"
	"tarry/tools/function"
)

// app has Go tools for tests: order is long-running, book asks for a number of days. Each of their runs is a line of a file, as are those
// of report and draft, which save artifacts.
func app(lookup func(string) (string, bool)) (tarry.App, error) {
	dir, _ := lookup("TARRY_FAULT_DIR")
	order, err := function.NewCall("order", "Orders something, and waits until it is there.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
		return map[string]any{"status": "ordered"}, note(dir, c.Name)
	}, function.LongRunning())
	if err != nil {
		return tarry.App{}, fmt.Errorf("test tool: %w", err)
	}
	book, err := function.NewCall("book", "Books days off.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
		if c.Answer == nil {
			return nil, &tools.AnswerRequiredError{
				Message: "How many days?", Payload: map[string]any{"left": 12},
				Schema: json.RawMessage(`{"type":"object","properties":{"days":{"type":"integer","minimum":1,"title":"Days"}},"required":["days"]}`),
			}
		}
		return map[string]any{"booked": c.Answer}, note(dir, c.Name)
	})
	if err != nil {
		return tarry.App{}, fmt.Errorf("test tool: %w", err)
	}
	report, err := function.New("report", "Writes a report that may be written again.", save(dir, "report.txt"), function.Idempotent())
	if err != nil {
		return tarry.App{}, fmt.Errorf("test tool: %w", err)
	}
	draft, err := function.New("draft", "Writes a draft once.", save(dir, "user:draft.txt"))
	if err != nil {
		return tarry.App{}, fmt.Errorf("test tool: %w", err)
	}
	return tarry.App{Tools: []tools.Tool{order, book, report, draft}}, nil
}

// save saves an artifact that says which of the runs it is from.
func save(dir, name string) func(context.Context, map[string]any) (map[string]any, error) {
	return func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		if err := note(dir, name); err != nil {
			return nil, err
		}
		body, err := os.ReadFile(filepath.Join(dir, "runs")) //nolint:gosec // a test's folder
		if err != nil {
			return nil, fmt.Errorf("count runs: %w", err)
		}
		text := fmt.Sprintf("artifact-content of run %d", strings.Count(string(body), name+"\n"))
		version, err := tools.SaveArtifact(ctx, tools.Artifact{Name: name, Part: genai.NewPartFromText(text), Custom: map[string]any{"mark": "artifact-content"}})
		return map[string]any{"version": version}, err //nolint:wrapcheck // an error of the tools' own
	}
}

func note(dir, name string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // a test's folder
	if err != nil {
		return fmt.Errorf("note run: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteString(name + "\n")
	return err
}
