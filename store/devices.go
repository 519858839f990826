package store

import (
	"context"
	"time"

	"tarry/auth/oauth"
)

// DueDevices implements [oauth.Store]. Who moves the time that a flow is due has it until then.
func (s *Store) DueDevices(ctx context.Context, limit int, lease time.Duration) (taken []oauth.Flow, err error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	due, err := c.flows(`status = 'live' AND due > 0 AND due <= ? ORDER BY due LIMIT ?`, c.now, limit)
	if err != nil {
		return nil, err
	}
	for _, f := range due {
		n, err := c.exec(`UPDATE flows SET due = ? WHERE state_hash = ? AND status = 'live' AND due > 0 AND due <= ?`, c.now+lease.Microseconds(), f.StateHash, c.now)
		if err != nil {
			return taken, err
		}
		if n == 1 {
			taken = append(taken, f)
		}
	}
	return taken, nil
}

// DevicePolled implements [oauth.Store].
func (s *Store) DevicePolled(ctx context.Context, stateHash string, pace time.Duration) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	_, err = c.exec(`UPDATE flows SET pace = ?, due = ? WHERE state_hash = ? AND status = 'live'`, pace.Microseconds(), c.now+pace.Microseconds(), stateHash)
	return err
}

// EndDevice implements [oauth.Store].
func (s *Store) EndDevice(ctx context.Context, stateHash, reason string) error {
	return s.tx(ctx, func(c *conn) error {
		_, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		n, err := c.exec(`UPDATE flows SET status = 'spent', device = NULL, due = 0 WHERE state_hash = ? AND status = 'live'`, stateHash)
		if err != nil {
			return err
		}
		if n == 0 {
			return oauth.ErrConflict
		}
		return c.audit(r.Owner, r.Session, r.ID, auditReopened, reason)
	})
}
