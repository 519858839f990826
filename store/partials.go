package store

import (
	"context"

	"tarry/session"
)

var _ session.Partials = (*Store)(nil)

// partialLife is how long a piece stays whose answer was never stored, in microseconds: the longest that a model may take, and
// some more.
const partialLife = int64(30 * 60 * 1e6)

// AddPartial implements [session.Partials].
func (s *Store) AddPartial(ctx context.Context, row session.Session, of string, e session.Event) error {
	return s.tx(ctx, func(c *conn) error {
		if e.Timestamp == 0 {
			e.Timestamp = float64(c.now) / 1e6
		}
		body, err := encode(e)
		if err != nil {
			return err
		}
		_, err = c.exec(`INSERT INTO partials (workflow_id, invocation, event, body, created)
			SELECT workflow_id, ?, ?, ?, ? FROM sessions WHERE workflow_id = ? AND NOT EXISTS (SELECT 1 FROM events WHERE id = ?)`,
			e.InvocationID, of, body, c.now, row.WorkflowID, of)
		return err
	})
}

// Partials implements [session.Partials].
func (s *Store) Partials(ctx context.Context, row session.Session, after int64) ([]session.Partial, error) {
	return collect(s.read(ctx), `SELECT seq, event, invocation, body FROM partials WHERE workflow_id = ? AND seq > ? ORDER BY seq`,
		[]any{row.WorkflowID, after}, func(scan func(...any) error) (session.Partial, error) {
			var p session.Partial
			var body string
			err := scan(&p.Seq, &p.Of, &p.Invocation, &body)
			p.Body = []byte(body)
			return p, err
		})
}

// whole drops the pieces of an event that is stored now.
func (c *conn) whole(event string) error {
	if event == "" {
		return nil
	}
	_, err := c.exec(`DELETE FROM partials WHERE event = ?`, event)
	return err
}
