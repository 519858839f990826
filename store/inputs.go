package store

import (
	"context"

	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/oauth"
	"tarry/session"
)

var _ inputs.Store = (*Store)(nil)

// AnswerInput implements [inputs.Store]. Logins are [oauth.ErrConflict].
func (s *Store) AnswerInput(ctx context.Context, id string, access auth.Access, answer []byte, status auth.Status) (out auth.Status, err error) {
	err = s.tx(ctx, func(c *conn) error {
		r, err := c.locked(id)
		if err != nil {
			return err
		}
		if !access(r.Owner) {
			return oauth.ErrNotFound
		}
		if r.Need.Login() {
			return oauth.ErrConflict
		}
		out = r.Status
		switch {
		case r.Status != auth.StatusPending:
			return auth.ErrClosed
		case !r.Deadline.IsZero() && micros(r.Deadline) <= c.now:
			return auth.ErrClosed // the run closes it
		}
		r.Need.Answer = answer
		need, err := encode(r.Need)
		if err != nil {
			return err
		}
		if _, err := c.exec(`UPDATE requests SET need = ? WHERE id = ?`, need, r.ID); err != nil {
			return err
		}
		out = status
		if err := c.end(r, status, r.Need.Type); err != nil {
			return err
		}
		return c.tell(r, status)
	})
	return out, err
}

// Answered returns the newest granted request of a slot in a session; ok is false when there is none.
func (s *Store) Answered(ctx context.Context, row session.Session, slot auth.Slot) (r auth.Request, ok bool, err error) {
	found, err := s.read(ctx).requests(`slot = ? AND workflow_id = ? AND status = 'granted' ORDER BY seq DESC LIMIT 1`, slot.ID(), row.WorkflowID)
	if err != nil || len(found) == 0 {
		return r, false, err
	}
	return found[0], true, nil
}

// RequestOf returns a request of a session; [oauth.ErrNotFound] for any other.
func (s *Store) RequestOf(ctx context.Context, row session.Session, id string) (auth.Request, error) {
	r, err := s.read(ctx).request(id)
	if err == nil && r.WorkflowID != row.WorkflowID {
		return auth.Request{}, oauth.ErrNotFound
	}
	return r, err
}

// AllAnswered returns the granted requests of a slot in a session, in the order in which they were asked.
func (s *Store) AllAnswered(ctx context.Context, row session.Session, slot auth.Slot) ([]auth.Request, error) {
	return s.read(ctx).requests(`slot = ? AND workflow_id = ? AND status = 'granted' ORDER BY seq`, slot.ID(), row.WorkflowID)
}
