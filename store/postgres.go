package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/lock"
)

// Codes of PostgreSQL's errors that are told apart; see appendix A of its manual.
const (
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codePassword      = "28P01"
	codeAuthorization = "28000"
	codeNoDatabase    = "3D000"
	codeConnections   = "53300"
	codePrivilege     = "42501"
)

func postgres() dialect {
	return dialect{
		name:       "postgres",
		skipLocked: " FOR UPDATE SKIP LOCKED",
		open:       openPostgres,
		serial:     "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		clock:      "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
		rebind:     numbered,
		unique:     func(err error) bool { return code(err) == codeUnique },
		again: func(err error) bool {
			c := code(err)
			return c == codeSerialization || c == codeDeadlock
		},
		settled:   settled,
		migrating: advisory{},
	}
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// numbered turns ? into $1, $2 and so on. No text of the store has a ? of another meaning.
func numbered(query string) string {
	var out strings.Builder
	out.Grow(len(query) + 16)
	for n := 1; ; n++ {
		i := strings.IndexByte(query, '?')
		if i < 0 {
			out.WriteString(query)
			return out.String()
		}
		out.WriteString(query[:i])
		out.WriteByte('$')
		out.WriteString(strconv.Itoa(n))
		query = query[i+1:]
	}
}

// What a connection may do, unless the URL says otherwise. No statement of the store takes long, and none waits long for a
// lock: who holds one for longer than this has been forgotten by its process.
const (
	poolSize         = 10
	connectTimeout   = 10 * time.Second
	statementTimeout = "30s"
	lockTimeout      = "10s"
	idleTimeout      = "60s" // inside a transaction
	connLifetime     = 30 * time.Minute
	connIdle         = 5 * time.Minute
)

// openPostgres makes the pool, and the one that migrates, whose statements may take long.
func openPostgres(ctx context.Context, url string) (db, admin *sql.DB, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil { // whose text may have a part of the password
		return nil, nil, fmt.Errorf("%w: the PostgreSQL URL cannot be read; it looks like postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full, "+
			"special characters of the password percent-encoded", ErrUnsupported)
	}
	size := poolSize
	if text, ok := config.RuntimeParams["pool_max_conns"]; ok {
		delete(config.RuntimeParams, "pool_max_conns")
		if size, err = strconv.Atoi(text); err != nil || size < 2 {
			return nil, nil, fmt.Errorf("%w: pool_max_conns of the PostgreSQL URL is not a number of connections, at least 2", ErrUnsupported)
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		"application_name": "tarry", "statement_timeout": statementTimeout, "lock_timeout": lockTimeout,
		"idle_in_transaction_session_timeout": idleTimeout,
	} {
		if _, ok := config.RuntimeParams[name]; !ok {
			config.RuntimeParams[name] = value
		}
	}
	// Each statement of a transaction sees what was committed before it: the store locks, and then reads.
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	db = stdlib.OpenDB(*config)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxLifetime(connLifetime)
	db.SetConnMaxIdleTime(connIdle)
	var schema sql.NullString
	if err := db.QueryRowContext(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return nil, nil, errors.Join(unreachable(config, err), db.Close())
	}
	if !schema.Valid {
		return nil, nil, errors.Join(errNoSchema, db.Close())
	}
	slow := config.Copy()
	slow.RuntimeParams["statement_timeout"], slow.RuntimeParams["idle_in_transaction_session_timeout"] = "0", "0"
	return db, stdlib.OpenDB(*slow), nil
}

// unreachable says in words why there is no connection. It names neither the URL nor the password.
func unreachable(c *pgx.ConnConfig, err error) error {
	where := fmt.Sprintf("PostgreSQL at %s:%d", c.Host, c.Port)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		var connecting *pgconn.ConnectError
		if errors.As(err, &connecting) {
			err = connecting.Unwrap()
		}
		return fmt.Errorf("cannot reach %s; check host, port and sslmode of TARRY_DATABASE_URL, and that it runs: %w", where, err)
	}
	switch refused.Code {
	case codePassword, codeAuthorization:
		return fmt.Errorf("%s does not let user %q in; check user and password of TARRY_DATABASE_URL, and pg_hba.conf: %w", where, c.User, refused)
	case codeNoDatabase:
		return fmt.Errorf("%s has no database %q; make it, such as with createdb --owner=%s %s: %w", where, c.Database, c.User, c.Database, refused)
	case codeConnections:
		return fmt.Errorf("%s has no connection left; raise max_connections, or set pool_max_conns in TARRY_DATABASE_URL below %d: %w", where, poolSize, refused)
	}
	return fmt.Errorf("%s refuses the connection: %w", where, refused)
}

// advisory makes processes that start at the same time migrate one after the other.
type advisory struct{}

var _ lock.SessionLocker = advisory{}

// One lock for each schema: databases may hold several installations.
const migrationLock = `(hashtextextended('tarry migrations ' || current_schema(), 0))`

// SessionLock implements [lock.SessionLocker]. It waits as long as ctx lasts, while the statements that come then wait for
// tables only so long that the processes which work do not queue up behind them.
func (advisory) SessionLock(ctx context.Context, c *sql.Conn) error {
	for _, text := range []string{`SET lock_timeout = 0`, `SELECT pg_advisory_lock` + migrationLock, `SET lock_timeout = '30s'`} {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("lock migrations: %w", err)
		}
	}
	return nil
}

// SessionUnlock implements [lock.SessionLocker].
func (advisory) SessionUnlock(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, `SELECT pg_advisory_unlock`+migrationLock); err != nil {
		return fmt.Errorf("unlock migrations: %w", err)
	}
	return nil
}

var errNoSchema = errors.New("no schema that the database user may use; grant it USAGE and CREATE on the schema, and check search_path")

// denied adds what is to be granted.
func denied(err error) error {
	if code(err) != codePrivilege {
		return err
	}
	return fmt.Errorf("the database user may not change the schema, which has to be made or brought up to date; grant it USAGE and CREATE on it: %w", err)
}
