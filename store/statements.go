package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// maxStatements bounds the statements that a connection keeps. The store has fewer texts; those of migrations and of lists
// of other lengths are used seldom and give way.
const maxStatements = 128

// keeping is a connector whose connections keep the statements that they have compiled: SQLite's driver compiles the text of
// each statement anew, which takes longer than most of them run.
type keeping struct{ driver.Connector }

// Connect implements [driver.Connector].
func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller is database/sql
	}
	full, ok := c.(fullConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%w: the driver's connection %T lacks methods", ErrUnsupported, c), c.Close())
	}
	return &keepingConn{fullConn: full, kept: map[string]*statement{}}, nil
}

// fullConn is all that database/sql looks for in a connection.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// keepingConn is used by one goroutine at a time, as database/sql promises.
type keepingConn struct {
	fullConn
	kept  map[string]*statement // by text
	clock int64
}

// statement is compiled. It is busy while its rows are read: to run it again would end them.
type statement struct {
	driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	busy  bool
	used  int64
}

// Unwrap returns the driver's connection, for the driver's own functions.
func (c *keepingConn) Unwrap() driver.Conn { return c.fullConn }

// Close implements [driver.Conn].
func (c *keepingConn) Close() error {
	var all []error
	for text := range c.kept {
		all = append(all, c.drop(text))
	}
	return errors.Join(append(all, c.fullConn.Close())...)
}

// ExecContext implements [driver.ExecerContext].
func (c *keepingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.fullConn.ExecContext(ctx, text, args) //nolint:wrapcheck // as in Connect
	}
	s.busy = true
	result, err := s.exec.ExecContext(ctx, args)
	s.busy = false
	return result, c.failed(text, err)
}

// QueryContext implements [driver.QueryerContext].
func (c *keepingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.fullConn.QueryContext(ctx, text, args) //nolint:wrapcheck // as in Connect
	}
	found, err := s.query.QueryContext(ctx, args)
	if err != nil {
		return nil, c.failed(text, err)
	}
	s.busy = true
	return &keptRows{Rows: found, c: c, s: s, text: text}, nil
}

// take returns the statement of a text, or nil if its rows are still being read.
func (c *keepingConn) take(ctx context.Context, text string) (*statement, error) {
	c.clock++
	if s := c.kept[text]; s != nil {
		if s.busy {
			return nil, nil //nolint:nilnil // to be compiled once more
		}
		s.used = c.clock
		return s, nil
	}
	made, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err //nolint:wrapcheck // as in Connect
	}
	s := &statement{Stmt: made, used: c.clock}
	var canExec, canQuery bool
	s.exec, canExec = made.(driver.StmtExecContext)
	s.query, canQuery = made.(driver.StmtQueryContext)
	if !canExec || !canQuery {
		return nil, made.Close() //nolint:wrapcheck // as in Connect
	}
	if len(c.kept) >= maxStatements {
		if err := c.evict(); err != nil {
			return nil, errors.Join(err, made.Close())
		}
	}
	c.kept[text] = s
	return s, nil
}

// evict drops the statement that was used longest ago.
func (c *keepingConn) evict() error {
	oldest, at := "", c.clock
	for text, s := range c.kept {
		if !s.busy && s.used < at {
			oldest, at = text, s.used
		}
	}
	return c.drop(oldest)
}

func (c *keepingConn) drop(text string) error {
	s := c.kept[text]
	if s == nil {
		return nil
	}
	delete(c.kept, text)
	return s.Close() //nolint:wrapcheck // as in Connect
}

// failed drops a statement that failed: the next use begins afresh.
func (c *keepingConn) failed(text string, err error) error {
	if err != nil {
		_ = c.drop(text) // what it says is said by err already
	}
	return err
}

// keptRows are the rows of a statement that is kept.
type keptRows struct {
	driver.Rows
	c    *keepingConn
	s    *statement
	text string
}

// Close implements [driver.Rows].
func (r *keptRows) Close() error {
	err := r.Rows.Close()
	r.s.busy = false
	if r.c.kept[r.text] != r.s {
		return err //nolint:wrapcheck // as in Connect
	}
	return r.c.failed(r.text, err)
}
