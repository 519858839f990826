package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"tarry/store"
)

// testURL is where tests find a PostgreSQL server on which they may make schemas; empty: they run on SQLite alone.
func testURL() string { return os.Getenv("TARRY_TEST_DATABASE_URL") }

// schema makes an empty schema that goes with the test, and returns the URL of a database that has it alone.
func schema(tb testing.TB) string {
	tb.Helper()
	if testURL() == "" {
		tb.Skip("TARRY_TEST_DATABASE_URL is not set")
	}
	name := fmt.Sprintf("tarry_test_%d_%d", os.Getpid(), schemas.Add(1))
	admin(tb, `CREATE SCHEMA `+name)
	tb.Cleanup(func() { admin(tb, `DROP SCHEMA `+name+` CASCADE`) })
	u, err := url.Parse(testURL())
	require.NoError(tb, err)
	q := u.Query()
	q.Set("search_path", name)
	q.Set("application_name", name)
	q.Set("pool_max_conns", "4")
	u.RawQuery = q.Encode()
	return u.String()
}

var schemas atomic.Int64

func admin(tb testing.TB, text string) {
	tb.Helper()
	db, err := administrator()
	require.NoError(tb, err)
	_, err = db.ExecContext(context.Background(), text) // also when the test's context has ended
	require.NoError(tb, err)
}

var administrator = sync.OnceValues(func() (*sql.DB, error) { return sql.Open("pgx", testURL()) })

// reach opens a schema past the store.
func reach(tb testing.TB, url string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("pgx", strings.ReplaceAll(url, "pool_max_conns=4&", ""))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

// blocked says whether somebody in the schema waits for a lock.
func blocked(ctx context.Context, db *sql.DB) bool {
	var n int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')`).Scan(&n)
	return err == nil && n > 0
}

func TestPostgresCannotBeOpened(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, tc := range map[string]struct{ url, says string }{
		"malformed":       {"postgres://tarry:sesame%zz@localhost/x", "cannot be read"},
		"a bad port":      {"postgres://tarry:sesame@localhost:port/x", "cannot be read"},
		"a bad pool":      {"postgres://tarry:sesame@127.0.0.1:1/x?pool_max_conns=many", "pool_max_conns"},
		"nobody there":    {"postgres://tarry:sesame@127.0.0.1:1/x?sslmode=disable", "cannot reach PostgreSQL at 127.0.0.1:1"},
		"no such scheme":  {"mysql://tarry:sesame@127.0.0.1/x", "unsupported"},
		"the other name":  {"postgresql://tarry:sesame@127.0.0.1:1/x?sslmode=disable", "cannot reach"},
		"not even a name": {"postgres:/tarry:sesame@", "postgres"},
	} {
		_, err := store.Open(ctx, tc.url)
		require.Error(t, err, name)
		require.ErrorContains(t, err, tc.says, name)
		require.NotContains(t, err.Error(), "sesame", name)
	}
}

func TestPostgresRefuses(t *testing.T) {
	t.Parallel()
	inSchema := schema(t)
	u, err := url.Parse(inSchema)
	require.NoError(t, err)
	u.Path = "/no_such_database"
	_, err = store.Open(t.Context(), u.String())
	require.ErrorContains(t, err, `has no database "no_such_database"; make it`)

	role := fmt.Sprintf("tarry_guest_%d", os.Getpid())
	admin(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'sesame'`)
	t.Cleanup(func() { admin(t, `DROP ROLE `+role) })
	u, err = url.Parse(inSchema)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "sesame")
	_, err = store.Open(t.Context(), u.String())
	require.ErrorContains(t, err, "no schema that the database user may use")
	require.NotContains(t, err.Error(), "sesame")
	admin(t, `GRANT USAGE ON SCHEMA `+u.Query().Get("search_path")+` TO `+role)
	t.Cleanup(func() { admin(t, `DROP OWNED BY `+role) })
	_, err = store.Open(t.Context(), u.String())
	require.ErrorContains(t, err, "may not change the schema")
}

// Whose schema is up to date needs no right to change it.
func TestPostgresWithFewRights(t *testing.T) {
	t.Parallel()
	inSchema := schema(t)
	open(t, inSchema)
	u, err := url.Parse(inSchema)
	require.NoError(t, err)
	name := u.Query().Get("search_path")
	role := fmt.Sprintf("tarry_clerk_%d", os.Getpid())
	for _, text := range []string{
		`CREATE ROLE ` + role + ` LOGIN PASSWORD 'sesame'`, `GRANT USAGE ON SCHEMA ` + name + ` TO ` + role,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + name + ` TO ` + role,
	} {
		admin(t, text)
	}
	t.Cleanup(func() { admin(t, `DROP OWNED BY `+role); admin(t, `DROP ROLE `+role) })
	u.User = url.UserPassword(role, "sesame")
	k := newKit(t, func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, u.String()) })
	_, request := k.waiting(ann, "s", "read")
	require.Len(t, k.login(request, "read"), 1)
}

// Times are the database's, whatever the machine's clock says.
func TestPostgresClock(t *testing.T) {
	t.Parallel()
	url := schema(t)
	s := open(t, url)
	k := &kit{T: t, ctx: t.Context(), s: s, clock: newClock()}
	row := k.session(ann, "s")
	require.WithinDuration(t, time.Now(), row.Created, time.Hour, "neither zero nor seconds")
	db := reach(t, url)
	var ahead float64
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8 - created / 1e6::float8 FROM sessions`).Scan(&ahead))
	require.GreaterOrEqual(t, ahead, 0.0)
	require.Less(t, ahead, 60.0)
}

// What waited for a lock is younger than what it waited for: a run that is seen first after the end of an invocation revives it.
func TestPostgresTimeIsOfTheLock(t *testing.T) {
	t.Parallel()
	url := schema(t)
	s := open(t, url)
	k := &kit{T: t, ctx: t.Context(), s: s, clock: newClock()}
	row := k.session(ann, "s")
	db := reach(t, url)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `UPDATE sessions SET run = run`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.SetStatus(k.ctx, row, "run-9", "running") }()
	require.Eventually(t, func() bool { return blocked(t.Context(), db) }, time.Minute, time.Millisecond)
	var released int64
	require.NoError(t, tx.QueryRowContext(t.Context(), `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint`).Scan(&released))
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
	var entered int64
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT entered FROM runs`).Scan(&entered))
	require.Greater(t, entered, released)
}

func TestPostgresMigrationsDownAndUp(t *testing.T) {
	t.Parallel()
	url := schema(t)
	open(t, url)
	db := reach(t, url)
	tables := func() (out []string) {
		rows, err := db.QueryContext(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT LIKE 'goose_%' ORDER BY 1`)
		require.NoError(t, err)
		defer rows.Close()
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
	down(t, db, "postgres")
	require.Empty(t, tables())
	open(t, url)
	require.Equal(t, before, tables())
}
