package store

import (
	"context"
	"strings"

	"tarry/auth"
	"tarry/session"
)

// counted is a row with its number, which pages go by.
type counted[T any] struct {
	row T
	seq int64
}

// SessionPage lists sessions of a user in apps, newest first; with q.Open those that run or wait. next goes on from there, and
// is empty on the last page. [auth.ErrCursor] when q.After is not a cursor.
func (s *Store) SessionPage(ctx context.Context, user string, apps []string, q auth.PageQuery) (page []session.Session, next string, err error) {
	open := ` AND closed = 0 AND (status = 'running' OR SUBSTR(status, 1, 8) = 'waiting_')`
	return pageOf(s.read(ctx), cursorSessions, `sessions`, sessionColumns, open, user, apps, q, scanSession)
}

// RequestPage lists requests to a user in apps as [Store.SessionPage] lists sessions.
func (s *Store) RequestPage(ctx context.Context, user string, apps []string, q auth.PageQuery) (page []auth.Request, next string, err error) {
	return pageOf(s.read(ctx), cursorRequests, `requests`, requestColumns, ` AND `+isOpen, user, apps, q, scanRequest)
}

// OpenRequests lists what sessions wait for, newest first.
func (s *Store) OpenRequests(ctx context.Context, workflowIDs []string) ([]auth.Request, error) {
	if len(workflowIDs) == 0 {
		return nil, nil
	}
	return s.read(ctx).requests(isOpen+` AND workflow_id IN (`+marks(len(workflowIDs))+`) ORDER BY seq DESC`, values(workflowIDs)...)
}

func pageOf[T any](c *conn, kind, table, columns, open, user string, apps []string, q auth.PageQuery, scan func(func(...any) error) (T, error)) (page []T, next string, err error) {
	page = []T{}
	if len(apps) == 0 {
		return page, "", nil
	}
	where, args := `usr = ? AND app IN (`+marks(len(apps))+`)`, append([]any{user}, values(apps)...)
	if q.Open {
		where += open
	}
	if q.After != "" {
		before, err := seqOf(kind, q.After)
		if err != nil {
			return nil, "", err
		}
		where, args = where+` AND seq < ?`, append(args, before)
	}
	found, err := collect(c, `SELECT seq, `+columns+` FROM `+table+` WHERE `+where+` ORDER BY seq DESC LIMIT ?`, append(args, q.Limit+1),
		func(read func(...any) error) (n counted[T], err error) {
			n.row, err = scan(func(dest ...any) error { return read(append([]any{&n.seq}, dest...)...) })
			return n, err
		})
	if err != nil {
		return nil, "", err
	}
	if len(found) > q.Limit { // there is one more
		found = found[:q.Limit]
		next = cursorOf(kind, found[q.Limit-1].seq)
	}
	for _, n := range found {
		page = append(page, n.row)
	}
	return page, next, nil
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func values(texts []string) []any {
	out := make([]any, 0, len(texts))
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}
