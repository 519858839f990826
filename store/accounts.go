package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

const (
	auditDeleted = "deleted"
	auditRevoked = "revoked"
)

// accountCursor is where a page of accounts ends.
type accountCursor struct{ App, Issuer, ID string }

// Accounts implements [oauth.Store]. Tokens of the app itself are nobody's account.
func (s *Store) Accounts(ctx context.Context, q oauth.AccountQuery, access auth.Access) (oauth.AccountPage, error) {
	where, args := []string{`usr = ?`, `client NOT LIKE ?`}, []any{q.User, auth.ClientOwn + "%"}
	if q.App != "" {
		where, args = append(where, `app = ?`), append(args, q.App)
	}
	if q.After != "" {
		var c accountCursor
		raw, err := base64.RawURLEncoding.DecodeString(q.After)
		if err != nil || json.Unmarshal(raw, &c) != nil {
			return oauth.AccountPage{}, auth.ErrCursor
		}
		where, args = append(where, `(app, issuer, id) > (?, ?, ?)`), append(args, c.App, c.Issuer, c.ID)
	}
	conn, err := s.timed(ctx)
	if err != nil {
		return oauth.AccountPage{}, err
	}
	found, err := conn.grants(strings.Join(where, ` AND `)+` ORDER BY app, issuer, id LIMIT ?`, append(args, q.Limit)...)
	if err != nil {
		return oauth.AccountPage{}, err
	}
	out := oauth.AccountPage{Grants: []oauth.Grant{}}
	for _, g := range found {
		if access(g.Slot.Owner) {
			out.Grants = append(out.Grants, g)
		}
	}
	if len(found) == q.Limit {
		last := found[len(found)-1]
		raw, err := json.Marshal(accountCursor{last.Slot.Owner.App, last.Slot.Issuer, last.ID})
		if err != nil {
			return out, fmt.Errorf("encode cursor: %w", err)
		}
		out.Next = base64.RawURLEncoding.EncodeToString(raw)
	}
	return out, nil
}

// Remove implements [oauth.Store].
func (s *Store) Remove(ctx context.Context, owner agent.Owner, id string) (g oauth.Grant, err error) {
	err = s.tx(ctx, func(c *conn) error {
		if g, err = c.ownGrant(owner, id); err != nil {
			return err
		}
		// Behind the lock a refresh has saved what it has, or comes too late.
		if err := c.lockSlot(g.Slot); err != nil {
			return err
		}
		if g, err = c.ownGrant(owner, id); err != nil {
			return err
		}
		if _, err := c.exec(`DELETE FROM grants WHERE id = ? AND app = ? AND usr = ?`, id, owner.App, owner.User); err != nil {
			return err
		}
		return c.audit(owner, "", "", auditDeleted, g.Slot.Issuer)
	})
	return g, err
}

func (c *conn) ownGrant(owner agent.Owner, id string) (oauth.Grant, error) {
	found, err := c.grants(`id = ? AND app = ? AND usr = ? AND client NOT LIKE ?`, id, owner.App, owner.User, auth.ClientOwn+"%")
	switch {
	case err != nil:
		return oauth.Grant{}, err
	case len(found) == 0 || found[0].Slot.Owner != owner:
		return oauth.Grant{}, oauth.ErrNotFound
	}
	return found[0], nil
}

// Revoked implements [oauth.Store].
func (s *Store) Revoked(ctx context.Context, g oauth.Grant, outcome string) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	return c.audit(g.Slot.Owner, "", "", auditRevoked, g.Slot.Issuer+": "+outcome)
}
