package store

import (
	"context"

	"tarry/auth/oauth"
)

// Keep implements [oauth.Store].
func (s *Store) Keep(ctx context.Context, g oauth.Grant) (out oauth.Grant, err error) {
	err = s.tx(ctx, func(c *conn) error {
		if err := c.lockSlot(g.Slot); err != nil {
			return err
		}
		if err := c.saveGrant(g.Slot, g); err != nil {
			return err
		}
		found, err := c.grants(`slot = ?`, g.Slot.ID())
		if err != nil {
			return err
		}
		out = found[0]
		return c.audit(g.Slot.Owner, "", "", auditGranted, "client credentials")
	})
	return out, err
}
