//go:build faults

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tarry"
	"tarry/tools"
	"tarry/tools/function"
)

// app has Go tools for tests: order is long-running, book asks for a number of days. Each of their runs is a line of a file.
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
	return tarry.App{Tools: []tools.Tool{order, book}}, nil
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
