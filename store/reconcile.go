package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tarry/session"
)

// Unsettled lists sessions that show as running or waiting and have not changed since before, oldest first.
func (s *Store) Unsettled(ctx context.Context, before time.Time, limit int) ([]session.Session, error) {
	return collect(s.read(ctx), `SELECT `+sessionColumns+` FROM sessions WHERE closed = 0 AND status NOT IN ('', 'idle') AND invocation <> '' AND updated < ? ORDER BY updated LIMIT ?`,
		[]any{micros(before), limit}, scanSession)
}

// Touch records that a session was looked at.
func (s *Store) Touch(ctx context.Context, row session.Session) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	_, err = c.exec(`UPDATE sessions SET updated = ? WHERE workflow_id = ?`, c.now, row.WorkflowID)
	return err
}

// Abandon ends the current invocation of a session whose run is gone: its open calls are answered, or the conversation
// could not go on (every call in it needs a response), its requests are cancelled, so that their links say so, and nothing
// shows as running. A chat goes on with its next message. Nothing happens if another invocation has begun since row was
// read.
func (s *Store) Abandon(ctx context.Context, row session.Session, status string) error {
	return s.tx(ctx, func(c *conn) error {
		now, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
		if err != nil || now.Invocation != row.Invocation {
			return err
		}
		calls, err := c.open(row, row.Invocation, nil)
		if err != nil {
			return err
		}
		add := session.Append{Run: at.run, Answers: map[string]string{}}
		for _, call := range calls {
			made, err := c.events(row.WorkflowID, []string{call.Event})
			if err != nil {
				return err
			}
			e := session.Interrupted(call, uuid.NewString())
			for _, m := range made { // seen by the agents that see the call
				e.Branch, e.IsolationScope = m.Branch, m.IsolationScope
			}
			add.Events, add.Answers[call.ID] = append(add.Events, e), e.ID
		}
		if _, err := c.appendAt(row, at, add); err != nil {
			return err
		}
		return c.finish(row, session.Ending{Invocation: row.Invocation, Status: status, Closed: row.Mode == "job" || now.Closed})
	})
}
