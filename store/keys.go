package store

import (
	"context"

	"tarry/auth"
	"tarry/auth/keys"
	"tarry/auth/oauth"
)

var _ keys.Store = (*Store)(nil)

// waitingKey reads, under its slot's lock, a request that waits for a key.
func (c *conn) waitingKey(id string, access auth.Access) (auth.Request, error) {
	r, err := c.locked(id)
	switch {
	case err != nil:
		return r, err
	case !access(r.Owner):
		return r, oauth.ErrNotFound
	case r.Need.Typed == nil, r.Status != auth.StatusPending, !r.Deadline.IsZero() && micros(r.Deadline) <= c.now: // the run closes it
		return r, oauth.ErrConflict
	}
	return r, nil
}

// EnterKey implements [keys.Store].
func (s *Store) EnterKey(ctx context.Context, id string, access auth.Access, g oauth.Grant) error {
	return s.tx(ctx, func(c *conn) error {
		r, err := c.waitingKey(id, access)
		if err != nil {
			return err
		}
		if r.Need.Slot != g.Slot {
			return oauth.ErrConflict
		}
		if err := c.saveGrant(g.Slot, g); err != nil {
			return err
		}
		_, err = c.grantRequests(r, g)
		return err
	})
}

// RefuseKey implements [keys.Store].
func (s *Store) RefuseKey(ctx context.Context, id string, access auth.Access, shown string) error {
	return s.tx(ctx, func(c *conn) error {
		r, err := c.waitingKey(id, access)
		if err != nil {
			return err
		}
		all, err := c.requests(`link = ? AND slot = ? AND `+isOpen+` AND (id = ? OR seq <=
			COALESCE((SELECT seq FROM requests WHERE id = ? AND link = ?), (SELECT MAX(seq) FROM requests WHERE link = ?))) ORDER BY seq`,
			r.Leader, r.Need.Slot.ID(), r.ID, shown, r.Leader, r.Leader)
		if err != nil {
			return err
		}
		for _, o := range all {
			if err := c.end(o, auth.StatusDenied, "declined"); err != nil {
				return err
			}
			if err := c.tell(o, auth.StatusDenied); err != nil {
				return err
			}
		}
		return nil
	})
}
