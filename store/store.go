package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Store is an open database. Safe for concurrent use, also by several processes.
type Store struct {
	db  *sql.DB
	d   dialect
	now func() time.Time // nil: the database's
	ran atomic.Int64
	// most is how many questions may wait for a person in an app; 0: any number.
	most int
	// artifacts is how many bytes of artifacts a person may keep in an app; 0: any number.
	artifacts int64
}

// Open connects to the database that url names (a file path, sqlite://PATH or postgres://…) and brings its schema up to date. No
// error has more of the URL than names of host, user and database.
func Open(ctx context.Context, url string) (*Store, error) {
	d, rest, err := dialectOf(url)
	if err != nil {
		return nil, err
	}
	db, admin, err := d.open(ctx, rest)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, d: d, most: DefaultOpenRequests, artifacts: DefaultArtifacts}
	if d.clock == "0" {
		s.now = time.Now
	}
	err = s.migrate(ctx, admin)
	if admin != db {
		err = errors.Join(err, admin.Close())
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Close closes the database.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// Statements is how many statements were run since the store was opened, BEGIN and COMMIT left out.
func (s *Store) Statements() int64 { return s.ran.Load() }

// SetClock replaces the clock, for tests of deadlines. Call it before use.
func (s *Store) SetClock(now func() time.Time) { s.now = now }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// querier is a transaction or the database itself.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// conn binds a querier to its context and dialect, so that statements read as statements.
type conn struct {
	ctx context.Context //nolint:containedctx // lives as long as one method call
	q   querier
	d   dialect
	// now is the time of a transaction, in microseconds: when it began or, where it has waited for a lock, when it got that. What
	// another transaction wrote under the same lock is older. It is 0 in what read returns.
	now int64
	set func() time.Time // the clock, if it is not the database's
	ran *atomic.Int64
	// most is [Store.LimitRequests]'s.
	most int
}

// read is for single statements that need no time.
func (s *Store) read(ctx context.Context) *conn { return s.conn(ctx, s.db) }

// timed is for single statements that need the time.
func (s *Store) timed(ctx context.Context) (*conn, error) {
	c := s.conn(ctx, s.db)
	return c, c.tick()
}

func (s *Store) conn(ctx context.Context, q querier) *conn {
	return &conn{ctx: ctx, q: q, d: s.d, set: s.now, ran: &s.ran, most: s.most}
}

// tick reads the clock.
func (c *conn) tick() error {
	if c.set != nil {
		c.now = micros(c.set())
		return nil
	}
	return c.get(`SELECT `+c.d.clock, nil, []any{&c.now})
}

// passed takes over what the dialect's clock said in a statement that may have waited.
func (c *conn) passed(now int64) {
	if c.set == nil {
		c.now = max(c.now, now)
	}
}

// errAgain says that a transaction should be run once more: what it had read is gone.
var errAgain = errors.New("changed meanwhile")

// tx runs f in a transaction; an error rolls it back. f runs again after a deadlock, so that it must set whatever it returns
// by way of variables.
func (s *Store) tx(ctx context.Context, f func(*conn) error) (err error) {
	const tries = 10
	for i := range tries {
		if err = s.once(ctx, f); err == nil || !errors.Is(err, errAgain) && !s.d.again(err) {
			return err
		}
		wait := time.NewTimer(time.Duration(rand.Int64N(int64(i+1) * int64(20*time.Millisecond)))) //nolint:gosec // not a secret
		select {
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(err, ctx.Err())
		case <-wait.C:
		}
	}
	return err
}

func (s *Store) once(ctx context.Context, f func(*conn) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	c := s.conn(ctx, tx)
	if err = c.tick(); err == nil {
		err = f(c)
	}
	if err != nil {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			return errors.Join(err, back)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// exec returns the number of rows that changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	c.ran.Add(1)
	result, err := c.q.ExecContext(c.ctx, c.d.rebind(query), storable(args)...)
	if err != nil {
		return 0, fmt.Errorf("exec: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("rows affected: %w", err)
	}
	return n, nil
}

// get scans one row; sql.ErrNoRows is passed on for errors.Is.
func (c *conn) get(query string, args, dest []any) error {
	c.ran.Add(1)
	if err := c.q.QueryRowContext(c.ctx, c.d.rebind(query), storable(args)...).Scan(dest...); err != nil {
		return fmt.Errorf("query row: %w", err)
	}
	return nil
}

// collect runs a query and makes one value of each row.
func collect[T any](c *conn, query string, args []any, scan func(scan func(...any) error) (T, error)) ([]T, error) {
	c.ran.Add(1)
	rows, err := c.q.QueryContext(c.ctx, c.d.rebind(query), storable(args)...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return out, nil
}

// storable replaces what text in PostgreSQL cannot hold, a NUL or what is not UTF-8, and what a model can put into the name of
// a tool. Every database gets the same. Ids cannot collide by it: agent.CheckID refuses what is replaced and what replaces it.
func storable(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = clean(text)
		}
	}
	return args
}

func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func missing(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// Times are stored as microseconds since 1970, zero as 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
