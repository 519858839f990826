package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

type grantBody struct {
	Slot     auth.Slot     `json:"slot"`
	Provider auth.Provider `json:"provider"`
	Client   auth.Client   `json:"client"`
}

const grantColumns = `id, version, scopes, access, refresh, client_secret, id_token, subject, label, body, expires, life, used, created, updated`

func scanGrant(scan func(...any) error) (oauth.Grant, error) {
	var g oauth.Grant
	var scopes, body string
	var expires, life, used, created, updated int64
	if err := scan(&g.ID, &g.Version, &scopes, &g.Access, &g.Refresh, &g.ClientSecret, &g.IDToken, &g.Account.Subject, &g.Account.Label, &body, &expires, &life, &used, &created, &updated); err != nil {
		return g, err
	}
	var b grantBody
	if err := decode(body, &b); err != nil {
		return g, err
	}
	g.Slot, g.Provider, g.Client = b.Slot, b.Provider, b.Client
	g.Expires, g.Created, g.Updated = at(expires), at(created), at(updated)
	g.Used = at(used)
	g.Life = time.Duration(life) * time.Microsecond
	return g, decode(scopes, &g.Scopes)
}

func (c *conn) grants(where string, args ...any) ([]oauth.Grant, error) {
	found, err := collect(c, `SELECT `+grantColumns+` FROM grants WHERE `+where, args, scanGrant)
	for i := range found {
		found[i].Age = time.Duration(c.now-micros(found[i].Updated)) * time.Microsecond
	}
	return found, err
}

// Commit implements [oauth.Store]. One consent wakes every run of the owner that waits for the slot with scopes within
// the grant, in the transaction that stores the token.
func (s *Store) Commit(ctx context.Context, stateHash string, g oauth.Grant) (woken []auth.Request, err error) {
	err = s.tx(ctx, func(c *conn) error {
		woken = nil
		f, r, err := c.flowAndRequest(stateHash)
		if err != nil {
			return err
		}
		if !r.Status.Open() || r.Need.Provider.Discovered && g.Provider.Issuer != r.Need.Provider.Issuer { // repinned meanwhile
			return oauth.ErrConflict
		}
		g := g // a second run begins with what the caller gave
		if err := c.mayReplace(f, r.Need.Slot.ID(), &g); err != nil {
			return err
		}
		if err := c.saveGrant(r.Need.Slot, g); err != nil {
			return err
		}
		g.Slot = r.Need.Slot
		woken, err = c.grantRequests(r, g)
		return err
	})
	return woken, err
}

func (c *conn) grantRequests(asked auth.Request, g oauth.Grant) (woken []auth.Request, err error) {
	open, err := c.requests(`slot = ? AND `+isOpen+` ORDER BY seq`, asked.Need.Slot.ID())
	if err != nil {
		return nil, err
	}
	for _, r := range open {
		// A provider that grants less than was asked still answers this request: the tool finds out what is missing.
		if r.ID != asked.ID && (!auth.Covers(g.Scopes, r.Need.Own()) || !answers(g, r.Need)) {
			continue
		}
		if err := c.end(r, auth.StatusGranted, ""); err != nil {
			return nil, err
		}
		if err := c.tell(r, auth.StatusGranted); err != nil {
			return nil, err
		}
		r.Status = auth.StatusGranted
		woken = append(woken, r)
	}
	return woken, nil
}

func (c *conn) saveGrant(slot auth.Slot, g oauth.Grant) error {
	body, err := encode(grantBody{slot, g.Provider, g.Client})
	if err != nil {
		return err
	}
	scopes, err := encode(g.Scopes)
	if err != nil {
		return err
	}
	if g.ID == "" {
		g.ID = uuid.NewString()
	}
	id := slot.ID()
	// The counter outlives the grant, so that a version that a server refused is older than any that comes later.
	if err := c.get(`INSERT INTO versions (slot, version) VALUES (?, 1) ON CONFLICT (slot) DO UPDATE SET version = versions.version + 1 RETURNING version`,
		[]any{id}, []any{&g.Version}); err != nil {
		return err
	}
	if _, err := c.exec(`DELETE FROM grants WHERE slot = ?`, id); err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO grants (id, slot, app, usr, domain, issuer, resource, client, version, scopes, access, refresh, client_secret, id_token, subject, label, body, expires, life, lease, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)`,
		g.ID, id, slot.Owner.App, slot.Owner.User, slot.Domain, slot.Issuer, slot.Resource, slot.Client, g.Version, scopes, g.Access, g.Refresh, g.ClientSecret,
		g.IDToken, g.Account.Subject, g.Account.Label, body, micros(g.Expires), g.Life.Microseconds(), c.now, c.now)
	return err
}

// Grants implements [oauth.Store].
func (s *Store) Grants(ctx context.Context, q oauth.GrantQuery) ([]oauth.Grant, error) {
	where, args := `app = ? AND usr = ? AND domain = ? AND resource = ?`, []any{q.Owner.App, q.Owner.User, q.Domain, q.Resource}
	if q.Client != "" {
		where, args = where+` AND client = ?`, append(args, q.Client)
	}
	if q.Issuer != "" {
		where, args = where+` AND issuer = ?`, append(args, q.Issuer)
	}
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	return c.grants(where+` ORDER BY updated DESC`, args...)
}

// Lease implements [oauth.Store].
func (s *Store) Lease(ctx context.Context, owner agent.Owner, id string, version int64, lease time.Duration) (g oauth.Grant, ok bool, err error) {
	err = s.tx(ctx, func(c *conn) error {
		n, err := c.exec(`UPDATE grants SET lease = ? WHERE id = ? AND app = ? AND usr = ? AND version = ? AND lease < ?`, c.now+lease.Microseconds(), id, owner.App, owner.User, version, c.now)
		if err != nil {
			return err
		}
		found, err := c.grants(`id = ? AND app = ? AND usr = ?`, id, owner.App, owner.User)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return oauth.ErrNotFound
		}
		g, ok = found[0], n == 1
		return nil
	})
	return g, ok, err
}

// SaveRefresh implements [oauth.Store].
func (s *Store) SaveRefresh(ctx context.Context, version int64, g oauth.Grant) (saved bool, err error) {
	scopes, err := encode(g.Scopes)
	if err != nil {
		return false, err
	}
	err = s.tx(ctx, func(c *conn) error {
		saved = false
		// A login writes the counter first and then the grant: the lock puts both into one order.
		if err := c.lockSlot(g.Slot); err != nil {
			return err
		}
		slot := g.Slot.ID()
		n, err := c.exec(`UPDATE grants SET version = ?, scopes = ?, access = ?, refresh = ?, id_token = ?, expires = ?, life = ?, lease = 0, updated = ? WHERE id = ? AND slot = ? AND version = ?`,
			version+1, scopes, g.Access, g.Refresh, g.IDToken, micros(g.Expires), g.Life.Microseconds(), c.now, g.ID, slot, version)
		if err != nil || n == 0 {
			return err
		}
		saved = true
		if _, err := c.exec(`UPDATE versions SET version = ? WHERE slot = ?`, version+1, slot); err != nil {
			return err
		}
		return c.audit(g.Slot.Owner, "", "", auditRefreshed, g.Slot.Issuer)
	})
	return saved, err
}

// Release implements [oauth.Store].
func (s *Store) Release(ctx context.Context, owner agent.Owner, id string, version int64) error {
	_, err := s.read(ctx).exec(`UPDATE grants SET lease = 0 WHERE id = ? AND app = ? AND usr = ? AND version = ?`, id, owner.App, owner.User, version)
	return err
}

// Drop implements [oauth.Store].
func (s *Store) Drop(ctx context.Context, owner agent.Owner, id string, version int64, reason string) error {
	return s.tx(ctx, func(c *conn) error {
		n, err := c.exec(`DELETE FROM grants WHERE id = ? AND app = ? AND usr = ? AND version = ?`, id, owner.App, owner.User, version)
		if err != nil || n == 0 {
			return err
		}
		return c.audit(owner, "", "", auditDropped, reason)
	})
}

// Used implements [oauth.Store].
func (s *Store) Used(ctx context.Context, g oauth.Grant, use oauth.Use) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	if c.now-micros(g.Used) > usedEvery.Microseconds() {
		if _, err := c.exec(`UPDATE grants SET used = ? WHERE id = ? AND used < ?`, c.now, g.ID, c.now); err != nil {
			return err
		}
	}
	return c.audit(g.Slot.Owner, use.Session, "", auditUsed, use.Agent+" "+use.Tool)
}

// usedEvery is how exactly a grant knows when it was used: a write for every call would be one too many.
const usedEvery = time.Minute
