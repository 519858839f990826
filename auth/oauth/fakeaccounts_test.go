package oauth_test

import (
	"context"
	"errors"
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

func (m *memoryStore) Park(_ context.Context, stateHash string, grant []byte) error {
	done, err := m.enter("Park")
	defer done()
	f := m.flows[stateHash]
	if err != nil || f.Status != oauth.FlowExchanging {
		return errors.Join(err, oauth.ErrConflict)
	}
	f.Status, f.Code, f.Verifier, f.Nonce = oauth.FlowParked, grant, nil, nil
	m.requests[f.Request].Status = auth.StatusPending
	m.audit("parked")
	return nil
}

func (m *memoryStore) Unpark(_ context.Context, stateHash, reason string) error {
	done, err := m.enter("Unpark")
	defer done()
	f := m.flows[stateHash]
	if err != nil || f.Status != oauth.FlowParked {
		return errors.Join(err, oauth.ErrConflict)
	}
	f.Status, f.Code = oauth.FlowSpent, nil
	m.audit("reopened %s", reason)
	return nil
}

func (m *memoryStore) Parked(context.Context, int) (out []oauth.Flow, err error) {
	done, err := m.enter("Parked")
	defer done()
	for _, f := range m.flows {
		if f.Status == oauth.FlowParked && f.Expires.Before(m.now()) {
			out = append(out, *f)
		}
	}
	return out, err
}

// mayReplace is what the store's Commit does about accounts.
func (m *memoryStore) mayReplace(f *oauth.Flow, slot auth.Slot, g oauth.Grant) error {
	if g.Replaces != "" && f.Status != oauth.FlowParked {
		return oauth.ErrConflict
	}
	for _, b := range m.grants {
		if b.Slot == slot && b.Account.Subject != "" && g.Account.Subject != "" && b.Account.Subject != g.Account.Subject && b.ID != g.Replaces {
			return oauth.ErrOtherAccount
		}
	}
	return nil
}
