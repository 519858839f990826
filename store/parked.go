package store

import (
	"context"
	"time"

	"tarry/auth/oauth"
)

const auditParked = "parked"

// Park implements [oauth.Store]. The lease of a parked flow is when it was parked.
func (s *Store) Park(ctx context.Context, stateHash string, grant []byte) error {
	return s.tx(ctx, func(c *conn) error {
		_, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		n, err := c.exec(`UPDATE flows SET status = 'parked', code = ?, verifier = NULL, nonce = NULL, lease = ? WHERE state_hash = ? AND status = 'exchanging'`,
			grant, c.now, stateHash)
		switch {
		case err != nil:
			return err
		case n == 0:
			return oauth.ErrConflict
		}
		if _, err := c.exec(`UPDATE requests SET status = 'pending' WHERE id = ? AND status = 'exchanging'`, r.ID); err != nil {
			return err
		}
		return c.audit(r.Owner, r.Session, r.ID, auditParked, "another account")
	})
}

// Unpark implements [oauth.Store].
func (s *Store) Unpark(ctx context.Context, stateHash, reason string) error {
	return s.tx(ctx, func(c *conn) error {
		_, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		n, err := c.exec(`UPDATE flows SET status = 'spent', code = NULL WHERE state_hash = ? AND status = 'parked'`, stateHash)
		switch {
		case err != nil:
			return err
		case n == 0:
			return oauth.ErrConflict
		}
		return c.audit(r.Owner, r.Session, r.ID, auditReopened, reason)
	})
}

// Parked implements [oauth.Store].
func (s *Store) Parked(ctx context.Context, limit int) ([]oauth.Flow, error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	return c.flows(`status = 'parked' AND expires < ? ORDER BY expires LIMIT ?`, c.now, limit)
}

// mayReplace says whether g may take the slot, which is locked. It corrects the life of tokens that were parked.
func (c *conn) mayReplace(f oauth.Flow, slot string, g *oauth.Grant) error {
	if g.Replaces != "" && f.Status != oauth.FlowParked {
		return oauth.ErrConflict // said no meanwhile, or twice yes
	}
	if f.Status == oauth.FlowParked && g.Life != 0 {
		g.Life -= time.Duration(c.now-micros(f.Lease)) * time.Microsecond
	}
	if g.Account.Subject == "" {
		return nil
	}
	before, err := c.grants(`slot = ?`, slot)
	if err != nil {
		return err
	}
	for _, b := range before {
		if b.Account.Subject != "" && b.Account.Subject != g.Account.Subject && b.ID != g.Replaces {
			return oauth.ErrOtherAccount
		}
	}
	return nil
}
