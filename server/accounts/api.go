package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// Connections keeps what logins gave. Safe for concurrent use.
type Connections interface {
	// Accounts lists what a person has connected, as far as access allows. [auth.ErrCursor] when q.After is not a cursor.
	Accounts(ctx context.Context, q Query, access auth.Access) (Page, error)
	// Disconnect deletes an account of the owner; [ErrUnknown] when there is none of that id. With tell the provider takes
	// back the tokens, or the outcome says why it has not.
	Disconnect(ctx context.Context, owner agent.Owner, id string, tell bool) (Outcome, error)
}

// ErrUnknown says that there is no such account, or it is somebody else's.
var ErrUnknown = errors.New("accounts: unknown account")

// Query selects accounts of one person; an empty App means all apps.
type Query struct {
	App, User string
	After     string
	Limit     int
}

// Page is a part of the list.
type Page struct {
	Accounts []Account `json:"accounts"`
	// Next is what after is set to for the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// Account is a connected account: a login that an app can use.
type Account struct {
	ID   string `json:"id"`
	App  string `json:"app"`
	User string `json:"user"`
	// Provider is the host where the person logged in, Server the one where the access is used, if that is known.
	Provider string `json:"provider"`
	Server   string `json:"server,omitempty"`
	// Account is the person's name at the provider, as far as the provider has said.
	Account string   `json:"account,omitempty"`
	Scopes  []string `json:"scopes"`
	// Connected is when the person logged in or the token was renewed last, LastUsed is to the minute.
	Connected time.Time `json:"connected"`
	LastUsed  time.Time `json:"last_used,omitzero"`
	// Expires is when the access ends by itself; not set where it is renewed, which Renews says, or unknown.
	Expires time.Time `json:"expires,omitzero"`
	Renews  bool      `json:"renews"`
}

// Outcome is what became of an account that was disconnected. It is gone here in any case.
type Outcome struct {
	ID string `json:"id"`
	// Revoked says that the provider has taken back the access. If it was asked to and has not, Reason says why.
	Revoked bool   `json:"revoked"`
	Reason  string `json:"reason,omitempty"`
}

const defaultAccounts = 50

func (h *Handler) list(r *http.Request) (any, error) {
	caller := signin.FromContext(r.Context())
	owner, err := ownerOf(caller, r.PathValue("app"), r.PathValue("user"))
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	most, err := web.Limit(query, defaultAccounts)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	page, err := h.Connections.Accounts(r.Context(), Query{App: owner.App, User: owner.User, After: query.Get("after"), Limit: most}, caller.Access())
	switch {
	case errors.Is(err, auth.ErrCursor):
		return nil, web.Refusal(http.StatusBadRequest, "after is not a cursor: take the next of an earlier answer")
	case err != nil:
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return page, nil
}

// disconnect is what DELETE does without, and revoke with telling the provider.
func (h *Handler) disconnect(tell bool) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		owner, err := ownerOf(signin.FromContext(r.Context()), r.PathValue("app"), r.PathValue("user"))
		if err != nil {
			return nil, err
		}
		out, err := h.Connections.Disconnect(r.Context(), owner, r.PathValue("account"), tell)
		switch {
		case errors.Is(err, ErrUnknown):
			return nil, web.Refusal(http.StatusNotFound, "no such account; GET /apps/%s/users/%s/accounts lists those there are", owner.App, owner.User)
		case err != nil:
			return nil, fmt.Errorf("disconnect account: %w", err)
		}
		return out, nil
	}
}

func ownerOf(caller signin.Principal, app, user string) (agent.Owner, error) {
	owner, err := caller.Owner(app, user)
	switch {
	case errors.Is(err, agent.ErrInvalidOwner):
		return owner, web.Refusal(http.StatusBadRequest, "%v", err)
	case err != nil:
		return owner, web.Refusal(http.StatusForbidden, "the caller may not act for this user of this app")
	}
	return owner, nil
}
