package store

import (
	"context"
	"slices"
	"time"

	"tarry/auth/vault"
)

var (
	_ vault.SwapStore     = (*Store)(nil)
	_ vault.RotationStore = (*Store)(nil)
)

// Swap implements [vault.SwapStore].
func (s *Store) Swap(ctx context.Context, name string, old, new []byte) (bool, error) { //nolint:revive // new is what it is
	n, err := s.read(ctx).exec(`UPDATE meta SET value = ? WHERE name = ? AND value = ?`, new, name, old)
	return n == 1, err
}

// forgetHolder is when a process that said nothing any more is forgotten.
const forgetHolder = 24 * time.Hour

// Announce implements [vault.HolderStore].
func (s *Store) Announce(ctx context.Context, h vault.Holder) error {
	known, err := encode(h.Keys)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(c *conn) error {
		if _, err := c.exec(`DELETE FROM vault_holders WHERE seen < ?`, c.now-forgetHolder.Microseconds()); err != nil {
			return err
		}
		_, err := c.exec(`INSERT INTO vault_holders (id, name, main, known, since, seen) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
			since = CASE WHEN vault_holders.main = excluded.main THEN vault_holders.since ELSE excluded.since END,
			main = excluded.main, known = excluded.known, seen = excluded.seen`, h.ID, h.Name, int64(h.Primary), known, c.now, c.now)
		return err
	})
}

// Leave implements [vault.HolderStore].
func (s *Store) Leave(ctx context.Context, id string) error {
	_, err := s.read(ctx).exec(`DELETE FROM vault_holders WHERE id = ?`, id)
	return err
}

// Holders implements [vault.HolderStore].
func (s *Store) Holders(ctx context.Context, within time.Duration) ([]vault.Holder, error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	return collect(c, `SELECT id, name, main, known, since FROM vault_holders WHERE seen >= ? ORDER BY name, id`, []any{c.now - within.Microseconds()},
		func(scan func(...any) error) (h vault.Holder, err error) {
			var main, since int64
			var known string
			if err := scan(&h.ID, &h.Name, &main, &known, &since); err != nil {
				return h, err
			}
			h.Primary, h.Held = uint32(main), time.Duration(c.now-since)*time.Microsecond //nolint:gosec // an id of 32 bits
			return h, decode(known, &h.Keys)
		})
}

const rotationLock = "rotation"

// LockRotation implements [vault.RotationStore].
func (s *Store) LockRotation(ctx context.Context, holder string, lease time.Duration) (bool, error) {
	c, err := s.timed(ctx)
	if err != nil {
		return false, err
	}
	n, err := c.exec(`INSERT INTO vault_locks (name, holder, expires) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
		WHERE vault_locks.holder = excluded.holder OR vault_locks.expires <= ?`, rotationLock, holder, c.now+lease.Microseconds(), c.now)
	return n == 1, err
}

// UnlockRotation implements [vault.RotationStore].
func (s *Store) UnlockRotation(ctx context.Context, holder string) error {
	_, err := s.read(ctx).exec(`DELETE FROM vault_locks WHERE name = ? AND holder = ?`, rotationLock, holder)
	return err
}

// SealedColumns lists every column that holds sealed values, by table. A request's lie inside its need.
func SealedColumns() map[string][]string {
	out := map[string][]string{}
	for _, t := range sealedTables() {
		out[t.name] = slices.Clone(t.columns)
	}
	return out
}
