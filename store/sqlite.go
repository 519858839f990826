package store

import (
	"errors"
	"net/url"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

func sqlite() dialect {
	return dialect{
		name:   "sqlite3",
		driver: "sqlite",
		serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
		rebind: func(q string) string { return q },
		unique: func(err error) bool {
			var e *driver.Error
			return errors.As(err, &e) && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
		},
	}
}

// sqliteDSN makes the settings that worker and server need to share a file safely: WAL, so that readers and the one
// writer do not block each other; synchronous=FULL, so that a commit survives a power cut; immediate transactions, so
// that a transaction which reads before it writes cannot fail half-way with SQLITE_BUSY; and a busy timeout.
func sqliteDSN(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "file:"), "?")
	q := url.Values{"_txlock": {"immediate"}}
	for _, pragma := range []string{"busy_timeout(20000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"} {
		q.Add("_pragma", pragma)
	}
	return "file:" + path + "?" + q.Encode()
}
