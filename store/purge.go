package store

import (
	"context"
	"fmt"
	"time"
)

// purgeBatch is how many rows of a table one transaction deletes: others wait for it no longer than for any other.
const purgeBatch = 500

// purged is what may go of a table: rows that have ended, by their age.
type purged struct {
	table, id, where string
	// args are how often the moment before which rows are old stands in where.
	args int
	// now compares with the time that it is, not with old rows: what has expired is refused already.
	now bool
	// after are statements for the keys that went.
	after string
}

// Nothing of the session log, of requests, grants and the audit log is here. A flow that is exchanging or parked is never
// old: it is ended first, by whoever recovers it. Locks are rows that the next one who needs them writes again.
func purges() []purged {
	return []purged{
		{table: "outbox", id: "seq", where: `done > 0 AND done < ?`, args: 1},
		{table: "flows", id: "state_hash", where: `status IN ('spent', 'live') AND expires < ?`, args: 1, after: `DELETE FROM refused_codes WHERE state_hash = ?`},
		{table: "deliveries", id: "seq", where: `(ended > 0 AND ended < ? OR ended = 0 AND due < ?)`, args: 2},
		{table: "people_sessions", id: "id_hash", where: `expires <= ?`, args: 1, now: true},
		{table: spent, id: "state_hash", where: `expires <= ?`, args: 1, now: true},
		{table: "parked_callbacks", id: "nonce_hash", where: `expires <= ?`, args: 1, now: true},
		{table: "partials", id: "seq", where: fmt.Sprintf(`created < CAST(? AS BIGINT) - %d`, partialLife), args: 1, now: true},
		{table: "slots", id: "id", where: `touched < ?`, args: 1},
		{table: "askers", id: "app || ' ' || usr", where: `touched < ?`, args: 1},
	}
}

// Purge deletes rows that nobody needs any more and that ended more than kept ago, in batches, and returns how many there were.
// Several processes may do it at once. What ctx or an error cuts off is left to the next time.
func (s *Store) Purge(ctx context.Context, kept time.Duration) (total int, err error) {
	for _, p := range purges() {
		for {
			n, err := s.purge(ctx, p, kept.Microseconds())
			total += n
			if err != nil {
				return total, fmt.Errorf("purge %s: %w", p.table, err)
			}
			if n < purgeBatch {
				break
			}
		}
	}
	return total, nil
}

func (s *Store) purge(ctx context.Context, p purged, kept int64) (n int, err error) {
	err = s.tx(ctx, func(c *conn) error {
		before := c.now - kept
		if p.now {
			before = c.now
		}
		args := []any{}
		for range p.args {
			args = append(args, before)
		}
		gone, err := collect(c, `WITH old AS (SELECT `+p.id+` AS id FROM `+p.table+` WHERE `+p.where+fmt.Sprintf(` LIMIT %d`, purgeBatch)+s.d.skipLocked+`)
			DELETE FROM `+p.table+` WHERE `+p.id+` IN (SELECT id FROM old) RETURNING `+p.id, args,
			func(scan func(...any) error) (key any, err error) { return key, scan(&key) })
		n = len(gone)
		if err != nil || p.after == "" {
			return err
		}
		for _, key := range gone {
			if _, err := c.exec(p.after, key); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
