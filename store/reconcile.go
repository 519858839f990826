package store

import (
	"context"
	"time"

	"tarry/session"
)

// Unsettled lists sessions that show as running or waiting and have not changed since before, oldest first.
func (s *Store) Unsettled(ctx context.Context, before time.Time, limit int) ([]session.Session, error) {
	return collect(s.read(ctx), `SELECT `+sessionColumns+` FROM sessions WHERE closed = 0 AND status NOT IN ('', 'idle') AND invocation <> '' AND updated < ? ORDER BY updated LIMIT ?`,
		[]any{micros(before), limit}, scanSession)
}

// Touch records that a session was looked at.
func (s *Store) Touch(ctx context.Context, row session.Session) error {
	_, err := s.read(ctx).exec(`UPDATE sessions SET updated = ? WHERE workflow_id = ?`, micros(s.now()), row.WorkflowID)
	return err
}

// Abandon ends the current invocation of a session whose run is gone: its requests are cancelled, so that their links say
// so, and nothing shows as running. A chat goes on with its next message.
func (s *Store) Abandon(ctx context.Context, row session.Session, status string) error {
	return s.tx(ctx, func(c *conn) error {
		if err := c.cancelRequests(row.WorkflowID, row.Invocation); err != nil {
			return err
		}
		if _, err := c.exec(`UPDATE invocations SET status = ?, ended = ? WHERE id = ? AND ended = 0`, status, c.now, row.Invocation); err != nil {
			return err
		}
		state, closed := "idle", 0
		if row.Mode == "job" {
			state, closed = status, 1
		}
		_, err := c.exec(`UPDATE sessions SET status = ?, closed = ?, updated = ? WHERE workflow_id = ?`, state, closed, c.now, row.WorkflowID)
		return err
	})
}
