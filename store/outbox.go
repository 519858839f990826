package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tarry/outbox"
)

var _ outbox.Store = (*Store)(nil)

// send writes a message in the caller's transaction.
func (c *conn) send(workflowID, signal, subject string, payload any) error {
	body, err := encode(payload)
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO outbox (id, workflow_id, signal, payload, subject, done, sent, failed, due, created) VALUES (?, ?, ?, ?, ?, 0, 0, 0, ?, ?)`,
		uuid.NewString(), workflowID, signal, body, subject, c.now, c.now)
	return err
}

// acted ends the messages about a subject: the run has done what they ask for.
func (c *conn) acted(subject string) error {
	if subject == "" {
		return nil
	}
	_, err := c.exec(`UPDATE outbox SET done = ? WHERE subject = ? AND done = 0`, c.now, subject)
	return err
}

// Due implements [outbox.Store].
func (s *Store) Due(ctx context.Context, limit int, claim time.Duration) ([]outbox.Message, error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	// The WITH makes PostgreSQL choose the rows once; a subquery with a LIMIT it may run more often.
	query := `WITH claimed AS (SELECT seq FROM outbox WHERE done = 0 AND due <= ? ORDER BY due, seq LIMIT ?` + s.d.skipLocked + `)
		UPDATE outbox SET due = ? WHERE seq IN (SELECT seq FROM claimed) RETURNING id, workflow_id, signal, payload, subject, sent, failed`
	return collect(c, query, []any{c.now, limit, c.now + claim.Microseconds()}, func(scan func(...any) error) (m outbox.Message, err error) {
		var payload string
		err = scan(&m.ID, &m.WorkflowID, &m.Signal, &payload, &m.Subject, &m.Sent, &m.Failed)
		m.Payload = []byte(payload)
		return m, err
	})
}

// Sent implements [outbox.Store].
func (s *Store) Sent(ctx context.Context, id string, next time.Duration) error {
	return s.later(ctx, `UPDATE outbox SET sent = sent + 1, failed = 0, due = ? WHERE id = ?`, id, next)
}

// Failed implements [outbox.Store].
func (s *Store) Failed(ctx context.Context, id string, next time.Duration) error {
	return s.later(ctx, `UPDATE outbox SET failed = failed + 1, due = ? WHERE id = ?`, id, next)
}

// Gone implements [outbox.Store].
func (s *Store) Gone(ctx context.Context, id string) error {
	return s.later(ctx, `UPDATE outbox SET done = ? WHERE id = ? AND done = 0`, id, 0)
}

// later sets a time of a message.
func (s *Store) later(ctx context.Context, query, id string, next time.Duration) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	_, err = c.exec(query, c.now+next.Microseconds(), id)
	return err
}

// Outstanding counts the messages that no run has acted on yet.
func (s *Store) Outstanding(ctx context.Context) (n int, err error) {
	err = s.read(ctx).get(`SELECT COUNT(*) FROM outbox WHERE done = 0`, nil, []any{&n})
	return n, err
}
