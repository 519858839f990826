package store

import (
	"context"
	"strings"
	"time"

	"tarry/auth"
	"tarry/auth/oauth"
)

// flowBody is the part of a flow that needs no column of its own; it holds no secret.
type flowBody struct {
	Provider    auth.Provider `json:"provider"`
	Client      auth.Client   `json:"client"`
	RedirectURI string        `json:"redirect_uri"`
	Scopes      []string      `json:"scopes"`
	Resource    string        `json:"resource"`
	Actor       string        `json:"actor,omitempty"`
}

const flowColumns = `state_hash, request, app, usr, status, cookie_hash, verifier, nonce, code, client_secret, device, pace, body, created, expires, lease, resumed`

func scanFlow(scan func(...any) error) (oauth.Flow, error) {
	var f oauth.Flow
	var body string
	var created, expires, lease, pace int64
	err := scan(&f.StateHash, &f.Request, &f.Owner.App, &f.Owner.User, &f.Status, &f.CookieHash, &f.Verifier, &f.Nonce, &f.Code, &f.ClientSecret, &f.Device, &pace, &body, &created, &expires, &lease, &f.Resumed)
	if err != nil {
		return f, err
	}
	var b flowBody
	if err := decode(body, &b); err != nil {
		return f, err
	}
	f.Provider, f.Client, f.RedirectURI, f.Scopes, f.Resource, f.Actor = b.Provider, b.Client, b.RedirectURI, b.Scopes, b.Resource, b.Actor
	f.Created, f.Expires, f.Lease = at(created), at(expires), at(lease)
	f.Pace = time.Duration(pace) * time.Microsecond
	return f, nil
}

func (c *conn) flows(where string, args ...any) ([]oauth.Flow, error) {
	return collect(c, `SELECT `+flowColumns+` FROM flows WHERE `+where, args, scanFlow)
}

func (c *conn) flow(stateHash string) (oauth.Flow, error) {
	found, err := c.flows(`state_hash = ?`, stateHash)
	switch {
	case err != nil:
		return oauth.Flow{}, err
	case len(found) == 0:
		return oauth.Flow{}, oauth.ErrNotFound
	}
	return found[0], nil
}

// BeginFlow implements [oauth.Store].
func (s *Store) BeginFlow(ctx context.Context, f oauth.Flow, live int) error {
	body, err := encode(flowBody{f.Provider, f.Client, f.RedirectURI, f.Scopes, f.Resource, auth.Actor(ctx)})
	if err != nil {
		return err
	}
	return s.tx(ctx, func(c *conn) error {
		r, err := c.locked(f.Request)
		if err != nil {
			return err
		}
		repinned := r.Need.Provider.Discovered && r.Need.Provider.Issuer != f.Provider.Issuer
		if r.Status != auth.StatusPending || r.Owner != f.Owner || repinned {
			return oauth.ErrConflict
		}
		var n int
		if err := c.get(`SELECT COUNT(*) FROM flows WHERE request = ? AND status = 'live' AND expires > ?`, []any{f.Request, c.now}, []any{&n}); err != nil {
			return err
		}
		if n >= live {
			return oauth.ErrTooMany
		}
		due := int64(0)
		if len(f.Device) > 0 {
			due = c.now + f.Pace.Microseconds()
		}
		if _, err := c.exec(`INSERT INTO flows (state_hash, request, app, usr, status, cookie_hash, verifier, nonce, code, client_secret, device, pace, due, body, created, expires, lease, resumed, seen)
			VALUES (?, ?, ?, ?, 'live', ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, 0, 0,
				COALESCE((SELECT seq FROM requests WHERE id = ? AND link = ?), (SELECT MAX(seq) FROM requests WHERE link = ?)))`,
			f.StateHash, f.Request, f.Owner.App, f.Owner.User, f.CookieHash, f.Verifier, f.Nonce, f.ClientSecret, f.Device, f.Pace.Microseconds(), due, body, c.now, micros(f.Expires), f.Shown, r.Leader, r.Leader); err != nil {
			return err
		}
		if err := c.useCallback(r.Need); err != nil {
			return err
		}
		return c.audit(r.Owner, r.Session, r.ID, auditOpened, strings.Join(f.Relaxed, " "))
	})
}

// Flow implements [oauth.Store].
func (s *Store) Flow(ctx context.Context, stateHash string) (oauth.Flow, error) {
	return s.read(ctx).flow(stateHash)
}

// Refuse implements [oauth.Store].
func (s *Store) Refuse(ctx context.Context, stateHash, reason, codeHash string, most int) error {
	return s.tx(ctx, func(c *conn) error {
		f, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		n, err := c.exec(`UPDATE flows SET refusals = refusals + 1 WHERE state_hash = ? AND refusals < ?`, f.StateHash, most)
		if err != nil || n == 0 { // it cannot be live any more: its codes need no record
			return err
		}
		if codeHash != "" {
			if _, err := c.exec(`INSERT INTO refused_codes (state_hash, code_hash) VALUES (?, ?) ON CONFLICT (state_hash, code_hash) DO NOTHING`, f.StateHash, codeHash); err != nil {
				return err
			}
		}
		if err := c.audit(r.Owner, r.Session, r.ID, auditRefused, reason); err != nil {
			return err
		}
		if n, err = c.exec(`UPDATE flows SET status = 'spent', verifier = NULL, nonce = NULL, device = NULL, due = 0 WHERE state_hash = ? AND status = 'live' AND refusals >= ?`, f.StateHash, most); err != nil || n == 0 {
			return err
		}
		return c.audit(r.Owner, r.Session, r.ID, auditReopened, "refused too often")
	})
}

// flowAndRequest reads both under the lock of the request's slot. Before the lock is there, another request may inherit the
// flow.
func (c *conn) flowAndRequest(stateHash string) (f oauth.Flow, r auth.Request, err error) {
	f, err = c.flow(stateHash)
	for err == nil {
		asked := f.Request
		if r, err = c.locked(asked); err != nil {
			return f, r, err
		}
		if f, err = c.flow(stateHash); err == nil && f.Request == asked {
			break
		}
	}
	return f, r, err
}

// StartExchange implements [oauth.Store].
func (s *Store) StartExchange(ctx context.Context, stateHash string, code []byte, codeHash string, lease time.Duration) (f oauth.Flow, err error) {
	err = s.tx(ctx, func(c *conn) error {
		if _, _, err := c.flowAndRequest(stateHash); err != nil {
			return err
		}
		var refused int
		if err := c.get(`SELECT COUNT(*) FROM refused_codes WHERE state_hash = ? AND code_hash = ?`, []any{stateHash, codeHash}, []any{&refused}); err != nil {
			return err
		}
		if refused > 0 {
			return oauth.ErrConflict
		}
		return c.exchange(stateHash, &f, `UPDATE flows SET status = 'exchanging', code = ?, lease = ? WHERE state_hash = ? AND status = 'live' AND expires > ?`,
			`UPDATE requests SET status = 'exchanging' WHERE id = ? AND status = 'pending'`, code, c.now+lease.Microseconds(), stateHash, c.now)
	})
	return f, err
}

// Resume implements [oauth.Store].
func (s *Store) Resume(ctx context.Context, stateHash string, lease time.Duration) (f oauth.Flow, err error) {
	err = s.tx(ctx, func(c *conn) error {
		if _, _, err := c.flowAndRequest(stateHash); err != nil {
			return err
		}
		return c.exchange(stateHash, &f, `UPDATE flows SET resumed = 1, lease = ? WHERE state_hash = ? AND status = 'exchanging' AND resumed = 0 AND lease < ?`,
			`UPDATE requests SET status = 'exchanging' WHERE id = ? AND status = 'exchanging'`, c.now+lease.Microseconds(), stateHash, c.now)
	})
	return f, err
}

// exchange moves flow and request together, or neither.
func (c *conn) exchange(stateHash string, f *oauth.Flow, flow, request string, args ...any) error {
	n, err := c.exec(flow, args...)
	if err != nil {
		return err
	}
	if n == 0 {
		return oauth.ErrConflict
	}
	if *f, err = c.flow(stateHash); err != nil {
		return err
	}
	if n, err = c.exec(request, f.Request); err == nil && n == 0 {
		return oauth.ErrConflict
	}
	return err
}

// Interrupted implements [oauth.Store]. A flow whose one retry was interrupted too is listed, to be reopened.
func (s *Store) Interrupted(ctx context.Context, limit int) ([]oauth.Flow, error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	return c.flows(`status = 'exchanging' AND lease < ? ORDER BY lease LIMIT ?`, c.now, limit)
}

// Reopen implements [oauth.Store]. A flow that is not exchanging any more is [oauth.ErrConflict]: whoever comes late must
// not end the exchange of the flow that followed.
func (s *Store) Reopen(ctx context.Context, stateHash, reason string) error {
	return s.tx(ctx, func(c *conn) error {
		f, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		if f.Status != oauth.FlowExchanging {
			return oauth.ErrConflict
		}
		return c.reopen(f, r, reason)
	})
}

func (c *conn) reopen(f oauth.Flow, r auth.Request, reason string) error {
	if _, err := c.exec(`UPDATE flows SET status = 'spent', code = NULL, verifier = NULL, nonce = NULL, device = NULL, due = 0 WHERE state_hash = ?`, f.StateHash); err != nil {
		return err
	}
	if _, err := c.exec(`UPDATE requests SET status = 'pending' WHERE id = ? AND status = 'exchanging'`, r.ID); err != nil {
		return err
	}
	return c.audit(r.Owner, r.Session, r.ID, auditReopened, reason)
}

// Deny implements [oauth.Store]. What the page did not show, because it was asked later, waits on.
func (s *Store) Deny(ctx context.Context, stateHash, reason string) error {
	return s.tx(ctx, func(c *conn) error {
		f, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		if !r.Status.Open() || f.Status == oauth.FlowSpent {
			return oauth.ErrConflict
		}
		return c.deny(f, r, reason)
	})
}

// spendFlows ends every login of a request that is under way; what they were proven by is forgotten.
func (c *conn) spendFlows(r auth.Request) error {
	_, err := c.exec(`UPDATE flows SET status = 'spent', code = NULL, verifier = NULL, nonce = NULL, device = NULL, due = 0 WHERE request = ?`, r.ID)
	return err
}
