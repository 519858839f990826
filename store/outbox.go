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
	now := s.now()
	query := `UPDATE outbox SET due = ? WHERE seq IN (SELECT seq FROM outbox WHERE done = 0 AND due <= ? ORDER BY due, seq LIMIT ?` + s.d.skipLocked + `)
		RETURNING id, workflow_id, signal, payload, subject, sent, failed`
	return collect(s.read(ctx), query, []any{micros(now.Add(claim)), micros(now), limit}, func(scan func(...any) error) (m outbox.Message, err error) {
		var payload string
		err = scan(&m.ID, &m.WorkflowID, &m.Signal, &payload, &m.Subject, &m.Sent, &m.Failed)
		m.Payload = []byte(payload)
		return m, err
	})
}

// Sent implements [outbox.Store].
func (s *Store) Sent(ctx context.Context, id string, next time.Duration) error {
	_, err := s.read(ctx).exec(`UPDATE outbox SET sent = sent + 1, failed = 0, due = ? WHERE id = ?`, micros(s.now().Add(next)), id)
	return err
}

// Failed implements [outbox.Store].
func (s *Store) Failed(ctx context.Context, id string, next time.Duration) error {
	_, err := s.read(ctx).exec(`UPDATE outbox SET failed = failed + 1, due = ? WHERE id = ?`, micros(s.now().Add(next)), id)
	return err
}

// Gone implements [outbox.Store].
func (s *Store) Gone(ctx context.Context, id string) error {
	_, err := s.read(ctx).exec(`UPDATE outbox SET done = ? WHERE id = ? AND done = 0`, micros(s.now()), id)
	return err
}

// Outstanding counts the messages that no run has acted on yet.
func (s *Store) Outstanding(ctx context.Context) (n int, err error) {
	err = s.read(ctx).get(`SELECT COUNT(*) FROM outbox WHERE done = 0`, nil, []any{&n})
	return n, err
}
