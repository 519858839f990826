package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

func sqlite() dialect {
	return dialect{
		name:   "sqlite3",
		open:   openSQLite,
		serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
		clock:  "0",
		rebind: func(q string) string { return q },
		unique: func(err error) bool {
			var e *driver.Error
			return errors.As(err, &e) && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
		},
		again:   func(error) bool { return false }, // transactions take turns
		settled: everything,
	}
}

func openSQLite(_ context.Context, path string) (db, admin *sql.DB, err error) {
	dsn, err := sqliteDSN(path)
	if err != nil {
		return nil, nil, err
	}
	connector, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	db = sql.OpenDB(keeping{connector})
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db, db, nil
}

// sqliteDSN makes the settings that worker and server need to share a file safely: WAL, so that readers and the one
// writer do not block each other; synchronous=FULL, so that a commit survives a power cut; immediate transactions, so
// that a transaction which reads before it writes cannot fail half-way with SQLITE_BUSY; and a busy timeout. A new file
// is readable by its owner alone, and SQLite gives its log the same mode.
func sqliteDSN(path string) (string, error) {
	if uri, ok := strings.CutPrefix(path, "file:"); ok {
		uri, _, _ = strings.Cut(uri, "?")
		var err error
		if path, err = url.PathUnescape(strings.TrimPrefix(uri, "//")); err != nil {
			return "", fmt.Errorf("%w: %q is no file URL", ErrUnsupported, path)
		}
	}
	if path == "" || path == ":memory:" {
		return "", fmt.Errorf("%w: SQLite needs a file, since every connection has a memory of its own", ErrUnsupported)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("open database: %w", err)
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("open database: %w", err)
	}
	q := url.Values{"_txlock": {"immediate"}}
	for _, pragma := range []string{"busy_timeout(20000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"} {
		q.Add("_pragma", pragma)
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode(), nil
}
