// Package storetest makes empty databases for tests of what is above the store.
//
// Tests of packages that keep something run on SQLite, and once more on PostgreSQL where TARRY_TEST_DATABASE_URL names a server
// (`make test-postgres`). The store's own suite does both in one run and does not need this package.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"tarry/store"
)

// Postgres is the server that TARRY_TEST_DATABASE_URL names; empty means that tests run on SQLite alone.
func Postgres() string { return os.Getenv("TARRY_TEST_DATABASE_URL") }

// URL is that of an empty database which goes with the test: a schema of [Postgres] or, without one, a file of SQLite.
func URL(tb testing.TB) string {
	tb.Helper()
	if Postgres() == "" {
		return filepath.Join(tb.TempDir(), "tarry.db")
	}
	return Schema(tb)
}

var schemas atomic.Int64 //nolint:gochecknoglobals // numbers the schemas of a process

// Schema is the URL of an empty schema of [Postgres], which goes with the test. Without a server the test is skipped.
func Schema(tb testing.TB) string {
	tb.Helper()
	if Postgres() == "" {
		tb.Skip("TARRY_TEST_DATABASE_URL is not set")
	}
	name := fmt.Sprintf("tarry_%d_%d", os.Getpid(), schemas.Add(1))
	u, err := url.Parse(Postgres())
	require.NoError(tb, err)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	plain := u.String() // what database/sql takes
	run := func(text string) {
		db, err := sql.Open("pgx", plain)
		require.NoError(tb, err)
		_, err = db.ExecContext(context.Background(), text) // also when the test's context has ended
		require.NoError(tb, err)
		require.NoError(tb, db.Close())
	}
	run(`CREATE SCHEMA ` + name)
	tb.Cleanup(func() { run(`DROP SCHEMA ` + name + ` CASCADE`) })
	q.Set("pool_max_conns", "4")
	u.RawQuery = q.Encode()
	return u.String()
}

// Open is a store on [URL], closed with the test.
func Open(tb testing.TB) *store.Store {
	tb.Helper()
	s, err := store.Open(context.Background(), URL(tb))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// Plain is a URL of this package without what the store alone understands.
func Plain(address string) string { return strings.ReplaceAll(address, "pool_max_conns=4&", "") }

// Reach opens the database of a URL of this package past the store.
func Reach(tb testing.TB, address string) *sql.DB {
	tb.Helper()
	driver, source := "sqlite", "file:"+address+"?_pragma=busy_timeout(10000)"
	if strings.Contains(address, "://") {
		driver, source = "pgx", Plain(address)
	}
	db, err := sql.Open(driver, source)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}
