package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tarry/agent"
	"tarry/auth"
)

// AccountStore keeps what logins gave, as their people see it.
type AccountStore interface {
	// Accounts lists the grants that people gave and access allows, in an order that does not change while they are listed.
	// [auth.ErrCursor] when q.After is not a cursor.
	Accounts(ctx context.Context, q AccountQuery, access auth.Access) (AccountPage, error)
	// Remove deletes a grant of the owner, whatever its version, and returns it as it was last. From then on no refresh can
	// save it; a login that is under way makes another. [ErrNotFound] when there is none.
	Remove(ctx context.Context, owner agent.Owner, id string) (Grant, error)
	// Revoked records what the provider said of the tokens of a removed grant.
	Revoked(ctx context.Context, g Grant, outcome string) error
}

// AccountQuery selects grants of one person; an empty App means all apps.
type AccountQuery struct {
	App, User string
	// After is the [AccountPage.Next] of the page before; empty means from the beginning.
	After string
	Limit int
}

// AccountPage is a part of the list. Next is empty on the last page.
type AccountPage struct {
	Grants []Grant
	Next   string
}

// Accounts lists a person's connected accounts.
func (s *Service) Accounts(ctx context.Context, q AccountQuery, access auth.Access) (AccountPage, error) {
	page, err := s.cfg.Store.Accounts(ctx, q, access)
	if err != nil {
		return AccountPage{}, fmt.Errorf("list accounts: %w", err)
	}
	return page, nil
}

// Disconnected says what became of a connected account: the grant is gone.
type Disconnected struct {
	Grant Grant
	// Told says that the provider has taken the tokens back; Reason, in our own words, why it has not.
	Told   bool
	Reason string
}

// Disconnect deletes a grant, and with tell has its provider revoke the tokens first or says why it did not: the deletion is
// certain, the provider may be down. A run that uses the slot next asks again. Errors: [ErrNotFound], and what the store says.
func (s *Service) Disconnect(ctx context.Context, owner agent.Owner, id string, tell bool) (Disconnected, error) {
	if tell {
		s.settleRefresh(ctx, owner, id)
	}
	g, err := s.cfg.Store.Remove(ctx, owner, id)
	if err != nil {
		return Disconnected{}, fmt.Errorf("remove account: %w", err)
	}
	out := Disconnected{Grant: g}
	if !tell {
		return out, nil
	}
	// The tokens are in nobody's hands any more but ours: a browser that goes away must not keep them alive.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.RefreshTimeout+leaseMargin/2)
	defer cancel()
	out.Reason = s.revoke(ctx, g)
	out.Told = out.Reason == ""
	outcome := out.Reason
	if out.Told {
		outcome = "told"
	}
	if err := s.cfg.Store.Revoked(ctx, g, outcome); err != nil {
		s.cfg.Log.ErrorContext(ctx, "record revocation", "grant_id", g.ID, "err", err)
	}
	return out, nil
}

// settlePatience bounds the wait for a refresh that is under way.
const settlePatience = 3 * time.Second

// settleRefresh lets a refresh that is under way end, and keeps others from beginning, so that no tokens are made that nobody
// revokes. Where that takes too long, the deletion goes on: it does not depend on it.
func (s *Service) settleRefresh(ctx context.Context, owner agent.Owner, id string) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	version := int64(0)
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		now, ours, err := s.cfg.Store.Lease(ctx, owner, id, version, settlePatience)
		if ours || errors.Is(err, ErrNotFound) {
			return
		}
		if err == nil {
			version = now.Version
		}
		if !pause(ctx, poll) {
			return
		}
	}
}
