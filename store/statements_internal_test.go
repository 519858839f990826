package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// one returns the only connection of a database with three rows.
func one(t *testing.T) (*sql.Conn, func() *keepingConn) {
	t.Helper()
	db, _, err := openSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err = c.ExecContext(t.Context(), `CREATE TABLE t (n BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)`)
	require.NoError(t, err)
	return c, func() (k *keepingConn) {
		require.NoError(t, c.Raw(func(raw any) error { k = raw.(*keepingConn); return nil }))
		return k
	}
}

const numbers = `SELECT n FROM t WHERE n >= ? ORDER BY n`

func list(ctx context.Context, t *testing.T, c *sql.Conn, from int, each func(n int)) (out []int) {
	t.Helper()
	rows, err := c.QueryContext(ctx, numbers, from)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var n int
		require.NoError(t, rows.Scan(&n))
		out = append(out, n)
		if each != nil {
			each(n)
		}
	}
	require.NoError(t, rows.Err())
	return out
}

func TestStatementsAreKept(t *testing.T) {
	t.Parallel()
	c, raw := one(t)
	require.Equal(t, []int{1, 2, 3}, list(t.Context(), t, c, 1, nil))
	first := raw().kept[numbers]
	require.NotNil(t, first)
	require.Equal(t, []int{2, 3}, list(t.Context(), t, c, 2, nil))
	require.Same(t, first, raw().kept[numbers])

	_, err := c.ExecContext(t.Context(), `ALTER TABLE t ADD COLUMN m TEXT`)
	require.NoError(t, err)
	require.Equal(t, []int{3}, list(t.Context(), t, c, 3, nil), "the schema has changed under it")
}

// The same query again while its rows are read gets a statement of its own.
func TestStatementsInUse(t *testing.T) {
	t.Parallel()
	c, raw := one(t)
	var inner [][]int
	outer := list(t.Context(), t, c, 1, func(n int) { inner = append(inner, list(t.Context(), t, c, n, nil)) })
	require.Equal(t, []int{1, 2, 3}, outer)
	require.Equal(t, [][]int{{1, 2, 3}, {2, 3}, {3}}, inner)
	require.False(t, raw().kept[numbers].busy)
}

func TestStatementsThatFail(t *testing.T) {
	t.Parallel()
	c, raw := one(t)
	const insert = `INSERT INTO t (n) VALUES (?)`
	_, err := c.ExecContext(t.Context(), insert, 1)
	require.True(t, sqlite().unique(err), err)
	require.Nil(t, raw().kept[insert])
	_, err = c.ExecContext(t.Context(), insert, 4)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	rows, err := c.QueryContext(ctx, numbers, 1)
	require.NoError(t, err)
	cancel()
	_ = rows.Close()
	if err := rows.Err(); err != nil { // the cancellation and Close race
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, []int{1, 2, 3, 4}, list(t.Context(), t, c, 1, nil))

	_, err = c.QueryContext(t.Context(), `SELECT nothing`)
	require.Error(t, err)
}

func TestStatementsGiveWay(t *testing.T) {
	t.Parallel()
	c, raw := one(t)
	for i := range 2 * maxStatements {
		var n int
		require.NoError(t, c.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d", i)).Scan(&n))
		require.Equal(t, i, n)
		require.Equal(t, []int{3}, list(t.Context(), t, c, 3, nil))
	}
	require.Len(t, raw().kept, maxStatements)
	require.NotNil(t, raw().kept[numbers], "what is used stays")
}
