package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// dialect is what differs between databases.
type dialect struct {
	// skipLocked ends a SELECT of rows to claim, where several writers can be inside transactions at once.
	skipLocked string
	name       string // as goose names it
	// open opens what a URL names, and sees to it that it can be opened.
	open func(rest string) (*sql.DB, error)
	// serial is the type of a growing primary key.
	serial string
	// rebind turns ? placeholders into the dialect's.
	rebind func(string) string
	// unique says whether an error is a violated unique constraint.
	unique func(error) bool
}

// ErrUnsupported says that a database URL names a database that this build does not speak.
var ErrUnsupported = errors.New("store: unsupported database")

func dialectOf(url string) (dialect, string, error) {
	scheme, rest, found := strings.Cut(url, ":")
	switch {
	case !found, scheme == "file":
		return sqlite(), url, nil
	case scheme == "sqlite":
		return sqlite(), strings.TrimPrefix(rest, "//"), nil
	default:
		return dialect{}, "", fmt.Errorf("%w: %q; use a file path or sqlite://PATH", ErrUnsupported, scheme)
	}
}
