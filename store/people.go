package store

import (
	"context"
	"time"

	"tarry/agent"
	"tarry/auth"
)

// seenEvery is how exactly a session's last use is known: writing it at every request would make reads into writes.
const seenEvery = time.Minute

const spent = "spent_signins"

// StartPersonSession keeps a new session under the hash of its id, and ends the one that the browser had. lifetime is its
// absolute end.
func (s *Store) StartPersonSession(ctx context.Context, idHash string, p auth.Person, lifetime time.Duration, replaces string) error {
	return s.tx(ctx, func(c *conn) error {
		if _, err := c.exec(`DELETE FROM people_sessions WHERE id_hash = ? OR expires <= ?`, replaces, c.now); err != nil {
			return err
		}
		_, err := c.exec(`INSERT INTO people_sessions (id_hash, issuer, subject, name, created, used, expires) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			idHash, p.Issuer, p.Subject, p.Name, c.now, c.now, c.now+lifetime.Microseconds())
		if err != nil {
			return err
		}
		return c.auditSignIn(auditSignedIn)
	})
}

// RefuseSignIn notes that the actor has proven who they are, and may not come in.
func (s *Store) RefuseSignIn(ctx context.Context) error {
	return s.tx(ctx, func(c *conn) error { return c.auditSignIn(auditSignInRefused) })
}

// auditSignIn is about the actor, who is nobody in an app yet.
func (c *conn) auditSignIn(action string) error {
	return c.audit(agent.Owner{User: clean(auth.Actor(c.ctx))}, "", "", action, "")
}

// PersonSession returns a session that was used within idle and notes that it is used; [auth.ErrNoSession] otherwise.
func (s *Store) PersonSession(ctx context.Context, idHash string, idle time.Duration) (auth.PersonSession, error) {
	var p auth.PersonSession
	c, err := s.timed(ctx)
	if err != nil {
		return p, err
	}
	var created, used, expires int64
	err = c.get(`SELECT issuer, subject, name, created, used, expires FROM people_sessions WHERE id_hash = ? AND expires > ? AND used > ?`,
		[]any{idHash, c.now, c.now - idle.Microseconds()}, []any{&p.Issuer, &p.Subject, &p.Name, &created, &used, &expires})
	switch {
	case missing(err):
		return auth.PersonSession{}, auth.ErrNoSession
	case err != nil:
		return auth.PersonSession{}, err
	}
	p.Created, p.Expires = at(created), at(expires)
	if c.now-used > min(seenEvery, idle/2).Microseconds() {
		_, err = c.exec(`UPDATE people_sessions SET used = ? WHERE id_hash = ? AND used < ?`, c.now, idHash, c.now)
	}
	return p, err
}

// EndPersonSession ends a session; one that is not there is no error.
func (s *Store) EndPersonSession(ctx context.Context, idHash string) error {
	return s.tx(ctx, func(c *conn) error {
		n, err := c.exec(`DELETE FROM people_sessions WHERE id_hash = ?`, idHash)
		if err != nil || n == 0 {
			return err
		}
		return c.auditSignIn(auditSignedOut)
	})
}

// SpendSignIn notes that a sign-in has come back, once: [auth.ErrSpent] the second time. life is how long it could.
func (s *Store) SpendSignIn(ctx context.Context, stateHash string, life time.Duration) error {
	return s.tx(ctx, func(c *conn) error {
		n, err := c.exec(`INSERT INTO `+spent+` (state_hash, expires) VALUES (?, ?) ON CONFLICT (state_hash) DO NOTHING`, stateHash, c.now+life.Microseconds())
		if err != nil {
			return err
		}
		if n == 0 {
			return auth.ErrSpent
		}
		_, err = c.exec(`DELETE FROM `+spent+` WHERE expires <= ?`, c.now)
		return err
	})
}

// ParkCallback keeps a sealed answer to a login until a service claims it; it replaces an earlier one of the same login.
func (s *Store) ParkCallback(ctx context.Context, nonceHash, service, stateHash string, callback []byte, life time.Duration) error {
	return s.tx(ctx, func(c *conn) error {
		if _, err := c.exec(`DELETE FROM parked_callbacks WHERE state_hash = ? OR expires <= ?`, stateHash, c.now); err != nil {
			return err
		}
		_, err := c.exec(`INSERT INTO parked_callbacks (nonce_hash, service, state_hash, callback, expires) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (state_hash) DO UPDATE SET nonce_hash = excluded.nonce_hash, callback = excluded.callback, expires = excluded.expires`,
			nonceHash, service, stateHash, callback, c.now+life.Microseconds())
		return err
	})
}

// TakeCallback returns what was parked for a service, once; [auth.ErrSpent] when there is nothing, or it came too late.
func (s *Store) TakeCallback(ctx context.Context, nonceHash, service string) (callback []byte, err error) {
	err = s.tx(ctx, func(c *conn) error {
		var expires int64
		err := c.get(`DELETE FROM parked_callbacks WHERE nonce_hash = ? AND service = ? RETURNING callback, expires`, []any{nonceHash, service}, []any{&callback, &expires})
		if err == nil && expires <= c.now {
			callback, err = nil, auth.ErrSpent
		}
		if missing(err) {
			return auth.ErrSpent
		}
		return err
	})
	return callback, err
}
