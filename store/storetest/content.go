package storetest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Content is all that a database of this package holds, bytes as they are, for tests that look for what must not be in it: each
// file of SQLite, by its path; each table of PostgreSQL, by its name.
func Content(tb testing.TB, address string) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	if !strings.Contains(address, "://") {
		for _, file := range []string{address, address + "-wal"} {
			body, err := os.ReadFile(file)
			if os.IsNotExist(err) && file != address {
				continue
			}
			require.NoError(tb, err)
			out[file] = body
		}
		return out
	}
	db := Reach(tb, address)
	tables, err := db.QueryContext(tb.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	require.NoError(tb, err)
	defer tables.Close()
	for tables.Next() {
		var table string
		require.NoError(tb, tables.Scan(&table))
		out[table] = nil
	}
	require.NoError(tb, tables.Err())
	for table := range out {
		rows, err := db.QueryContext(tb.Context(), `SELECT * FROM `+table) //nolint:gosec // G202: a name that the database gave
		require.NoError(tb, err)
		columns, err := rows.Columns()
		require.NoError(tb, err)
		values := make([][]byte, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			require.NoError(tb, rows.Scan(into...))
			out[table] = append(append(out[table], bytes.Join(values, []byte{'\n'})...), '\n')
		}
		require.NoError(tb, rows.Err())
		require.NoError(tb, rows.Close())
	}
	require.Greater(tb, len(out), 20, "tables")
	return out
}
