package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Store is an open database. Safe for concurrent use, also by several processes.
type Store struct {
	db  *sql.DB
	d   dialect
	now func() time.Time
	ran atomic.Int64
}

// Open connects to the database that url names (a file path, or sqlite://PATH) and brings its schema up to date.
func Open(ctx context.Context, url string) (*Store, error) {
	d, rest, err := dialectOf(url)
	if err != nil {
		return nil, err
	}
	db, err := d.open(rest)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	s := &Store{db: db, d: d, now: time.Now}
	if err := s.migrate(ctx); err != nil {
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
	now int64 // one instant for the whole transaction, in microseconds
	ran *atomic.Int64
}

func (s *Store) read(ctx context.Context) *conn {
	return &conn{ctx: ctx, q: s.db, d: s.d, now: micros(s.now()), ran: &s.ran}
}

// tx runs f in a transaction; an error rolls it back.
func (s *Store) tx(ctx context.Context, f func(*conn) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(&conn{ctx: ctx, q: tx, d: s.d, now: micros(s.now()), ran: &s.ran}); err != nil {
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
	result, err := c.q.ExecContext(c.ctx, c.d.rebind(query), args...)
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
	if err := c.q.QueryRowContext(c.ctx, c.d.rebind(query), args...).Scan(dest...); err != nil {
		return fmt.Errorf("query row: %w", err)
	}
	return nil
}

// collect runs a query and makes one value of each row.
func collect[T any](c *conn, query string, args []any, scan func(scan func(...any) error) (T, error)) ([]T, error) {
	c.ran.Add(1)
	rows, err := c.q.QueryContext(c.ctx, c.d.rebind(query), args...)
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
