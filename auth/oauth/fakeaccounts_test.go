package oauth_test

import (
	"context"
	"slices"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

func (m *memoryStore) Accounts(_ context.Context, q oauth.AccountQuery, access auth.Access) (out oauth.AccountPage, err error) {
	done, err := m.enter("Accounts")
	defer done()
	for _, g := range m.grants {
		if owner := g.Slot.Owner; access(owner) && owner.User == q.User && (q.App == "" || q.App == owner.App) {
			out.Grants = append(out.Grants, m.aged(g.Grant))
		}
	}
	return out, err
}

func (m *memoryStore) Remove(_ context.Context, owner agent.Owner, id string) (oauth.Grant, error) {
	done, err := m.enter("Remove")
	defer done()
	g := m.grant(owner, id)
	if g == nil || err != nil {
		return oauth.Grant{}, oauth.ErrNotFound
	}
	m.grants = slices.DeleteFunc(m.grants, func(o *storedGrant) bool { return o == g })
	m.audit("deleted")
	return g.Grant, nil
}

func (m *memoryStore) Revoked(_ context.Context, _ oauth.Grant, outcome string) error {
	done, err := m.enter("Revoked")
	defer done()
	m.audit("revoked %s", outcome)
	return err
}

// edit is somebody at the database.
func (m *memoryStore) edit(change func(*oauth.Grant)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.grants {
		change(&g.Grant)
	}
}
