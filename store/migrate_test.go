package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
	"tarry/store"
)

// Down is for developers; it must leave nothing, so that up works again.
func TestMigrationsDownAndUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tarry.db")
	s := open(t, path)
	require.NoError(t, s.Create(t.Context(), session.Session{Owner: ann, ID: "s", WorkflowID: "w"}))
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tables := func() []string {
		rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' ORDER BY name`)
		require.NoError(t, err)
		defer rows.Close()
		out := []string{}
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			out = append(out, name)
		}
		require.NoError(t, rows.Err())
		return out
	}
	before := tables()
	require.Contains(t, before, "outbox")

	down(t, db, "sqlite3")
	require.Empty(t, tables())

	again := open(t, path)
	require.Equal(t, before, tables())
	_, err = again.Session(t.Context(), ann, "s")
	require.ErrorIs(t, err, session.ErrNotFound)
}

// down undoes every migration.
func down(t *testing.T, db *sql.DB, dialect string) {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	require.NoError(t, err)
	for i := len(files) - 1; i >= 0; i-- {
		body, err := os.ReadFile(files[i])
		require.NoError(t, err)
		text, err := store.Migration(dialect, string(body))
		require.NoError(t, err)
		_, down, found := strings.Cut(text, "-- +goose Down")
		require.True(t, found, files[i])
		_, err = db.ExecContext(t.Context(), down)
		require.NoError(t, err)
	}
	_, err = db.ExecContext(t.Context(), `DELETE FROM goose_db_version WHERE version_id > 0`)
	require.NoError(t, err)
}
