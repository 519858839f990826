package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3/lock"
)

// dialect is what differs between databases.
type dialect struct {
	// skipLocked ends a SELECT of rows to claim, where several writers can be inside transactions at once.
	skipLocked string
	name       string // as goose names it
	// open opens what a URL names, and sees to it that it can be opened. It returns the pool of migrations too, which may be
	// the same.
	open func(ctx context.Context, rest string) (db, admin *sql.DB, err error)
	// serial is the type of a growing primary key.
	serial string
	// rebind turns ? placeholders into the dialect's.
	rebind func(string) string
	// unique says whether an error is a violated unique constraint.
	unique func(error) bool
	// again says whether a transaction that ended with an error may come to something when it is run once more.
	again func(error) bool
	// clock is an expression of the database's time in microseconds since 1970. It is 0 where the machine's clock is the one
	// that all processes share.
	clock string
	// settled returns the number of an audit row up to which no row can appear any more.
	settled func(context.Context, *conn) (int64, error)
	// migrating is held by whoever migrates; nil where the database sees to that.
	migrating lock.SessionLocker
}

// ErrUnsupported says that a database URL names a database that this build does not speak.
var ErrUnsupported = errors.New("store: unsupported database")

// dialectOf returns errors that name no more of the URL than its scheme: it may have a password.
func dialectOf(url string) (dialect, string, error) {
	scheme, rest, found := strings.Cut(url, ":")
	switch {
	case !found, scheme == "file":
		return sqlite(), url, nil
	case scheme == "sqlite":
		return sqlite(), strings.TrimPrefix(rest, "//"), nil
	case scheme == "postgres", scheme == "postgresql":
		return postgres(), url, nil
	default:
		return dialect{}, "", fmt.Errorf("%w: %q; use a file path, sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE", ErrUnsupported, scheme)
	}
}
