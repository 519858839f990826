package activities_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/models"
	"tarry/tools/function"
	"tarry/wire"
)

// commits counts the transactions in SQLite's write-ahead log: the frames that end one. Each was a sync of the disk.
// See section 4 of SQLite's file format.
func (w *world) commits() (n int) {
	w.t.Helper()
	const header, frameHeader = 32, 24
	log, err := os.ReadFile(w.path + "-wal")
	require.NoError(w.t, err)
	require.Greater(w.t, len(log), header)
	salt, frame := string(log[16:24]), frameHeader+int(binary.BigEndian.Uint32(log[8:]))
	for at := header; at+frame <= len(log) && string(log[at+8:at+16]) == salt; at += frame {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 {
			n++
		}
	}
	return n
}

// What a turn of a model call and a tool call costs in the store, however long the conversation is. These numbers are
// exact; a change that raises one should know why.
func TestCostOfATurn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts                []function.Option
		commits, statements int
	}{
		"tool":            {nil, 3, 15}, // its mark is a commit, since it must not run twice
		"idempotent tool": {[]function.Option{function.Idempotent()}, 2, 14},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, none) (string, error) { return "x", nil }, tc.opts...))
			heads := []string{w.says("Do it.").Event}
			w.model = func(context.Context, *models.Request) (*models.Response, error) { return calling("t"), nil }
			for turn := range 6 {
				commits, statements := w.commits(), w.store.Statements()
				var asked wire.ModelResult
				require.NoError(t, w.do(wire.ActivityCallModel, fmt.Sprint("model", turn), 1, wire.ModelInput{Agent: "a", Heads: heads}, &asked))
				var out wire.ToolResult
				require.NoError(t, w.do(wire.ToolPrefix+asked.Calls[0].Tool, fmt.Sprint("tool", turn), 1, wire.ToolInput{Call: asked.Calls[0].ID}, &out))
				heads = []string{out.Event}
				if turn == 0 {
					continue // reads the definition and the conversation
				}
				require.Equal(t, tc.commits, w.commits()-commits, "turn %d", turn)
				require.Equal(t, int64(tc.statements), w.store.Statements()-statements, "turn %d", turn)
			}
		})
	}
}
