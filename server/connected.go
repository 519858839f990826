package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/server/accounts"
)

// connected shows the login service's grants as accounts, without what is secret about them.
type connected struct{ service *oauth.Service }

var _ accounts.Connections = connected{}

// Accounts implements accounts.Connections.
func (c connected) Accounts(ctx context.Context, q accounts.Query, access auth.Access) (accounts.Page, error) {
	page, err := c.service.Accounts(ctx, oauth.AccountQuery{App: q.App, User: q.User, After: q.After, Limit: q.Limit}, access)
	if err != nil {
		return accounts.Page{}, fmt.Errorf("accounts: %w", err)
	}
	out := accounts.Page{Accounts: make([]accounts.Account, 0, len(page.Grants)), Next: page.Next}
	for _, g := range page.Grants {
		out.Accounts = append(out.Accounts, accountOf(g))
	}
	return out, nil
}

func accountOf(g oauth.Grant) accounts.Account {
	out := accounts.Account{
		ID: g.ID, App: g.Slot.Owner.App, User: g.Slot.Owner.User, Provider: bareHost(g.Slot.Issuer), Server: bareHost(strings.TrimPrefix(g.Slot.Resource, boundTo)),
		Account: accountName(g.Account), Scopes: append([]string{}, g.Scopes...), Connected: g.Updated, LastUsed: g.Used, Renews: len(g.Refresh) > 0,
	}
	if !out.Renews {
		out.Expires = g.Expires
	}
	return out
}

// accountName is how a person knows an account of theirs.
func accountName(a oauth.Account) string {
	if a.Label != "" {
		return a.Label
	}
	return a.Subject
}

// boundTo begins the resource of a slot where only the server is known, and no name for it.
const boundTo = "server:"

// bareHost is the host of a URL, or the text itself where it is a label.
func bareHost(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Host
	}
	return text
}

// Disconnect implements accounts.Connections.
func (c connected) Disconnect(ctx context.Context, owner agent.Owner, id string, tell bool) (accounts.Outcome, error) {
	out, err := c.service.Disconnect(ctx, owner, id, tell)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		return accounts.Outcome{}, accounts.ErrUnknown
	case err != nil:
		return accounts.Outcome{}, fmt.Errorf("accounts: %w", err)
	}
	return accounts.Outcome{ID: id, Revoked: out.Told, Reason: out.Reason}, nil
}
