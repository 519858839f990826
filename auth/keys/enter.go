package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tarry/auth"
	"tarry/auth/oauth"
)

// maxEnter bounds how often what was typed is stored anew because the request that it answers has ended meanwhile and another
// one waits behind the same link.
const maxEnter = 3

// Enter stores what the asked person typed and ends the request, with all others that wait for the same key. Only the first
// counts; what comes after it is [auth.ErrClosed] and changes nothing. Errors besides: what the store says about requests that
// access does not allow, [ErrNotKey], and an [*auth.AnswerError] for what cannot be sent.
func (s *Service) Enter(ctx context.Context, access auth.Access, id string, v auth.KeyValue) (auth.Request, error) {
	r, err := s.front(ctx, access, id)
	if err != nil {
		return r, err
	}
	v = trimmed(v, *r.Need.Typed)
	if err := check(v, *r.Need.Typed); err != nil {
		return r, err
	}
	for range maxEnter {
		if r.Status != auth.StatusPending {
			return r, auth.ErrClosed
		}
		var g oauth.Grant
		if g, err = s.grant(r, v); err != nil {
			return r, err
		}
		if err = s.Store.EnterKey(ctx, r.ID, access, g); err == nil {
			return s.done(ctx, r, auth.StatusGranted), nil
		}
		if !errors.Is(err, oauth.ErrConflict) {
			return r, fmt.Errorf("store key: %w", err)
		}
		if r, err = s.front(ctx, access, id); err != nil {
			return r, err
		}
	}
	return s.late(r), auth.ErrClosed
}

// Refuse ends, for the person who will not give the key, what they were shown: see [Store.RefuseKey].
func (s *Service) Refuse(ctx context.Context, access auth.Access, id, shown string) (auth.Request, error) {
	r, err := s.front(ctx, access, id)
	if err != nil {
		return r, err
	}
	if r.Status != auth.StatusPending {
		return r, auth.ErrClosed
	}
	switch err := s.Store.RefuseKey(ctx, r.ID, access, shown); {
	case errors.Is(err, oauth.ErrConflict):
		if r, err = s.Store.Request(ctx, r.ID, access); err != nil {
			return r, fmt.Errorf("refuse key: %w", err)
		}
		return s.late(r), auth.ErrClosed
	case err != nil:
		return r, fmt.Errorf("refuse key: %w", err)
	}
	return s.done(ctx, r, auth.StatusDenied), nil
}

// front is the request behind a link that is to be answered: the oldest that is open, else the one that was asked for.
func (s *Service) front(ctx context.Context, access auth.Access, id string) (auth.Request, error) {
	behind, err := s.Store.Behind(ctx, id, access)
	if err != nil {
		return auth.Request{}, fmt.Errorf("find request: %w", err)
	}
	r := behind[0]
	if i := slices.IndexFunc(behind, func(o auth.Request) bool { return o.Status == auth.StatusPending }); i > 0 {
		r = behind[i]
	}
	if !sound(r) {
		return r, ErrNotKey
	}
	return r, nil
}

func (s *Service) grant(r auth.Request, v auth.KeyValue) (oauth.Grant, error) {
	n := r.Need
	now := time.Now()
	g := oauth.Grant{ID: uuid.NewString(), Slot: n.Slot, Scopes: n.Scopes, Provider: n.Provider, Client: n.Client, Created: now, Updated: now}
	plain, err := encode(v, *n.Typed)
	if err != nil {
		return g, err
	}
	if g.Access, err = s.Vault.Seal(plain, ad(g)); err != nil {
		return g, fmt.Errorf("seal key: %w", err)
	}
	return g, nil
}

// late makes of a request that is still pending one whose deadline is over, which its run has not closed yet.
func (*Service) late(r auth.Request) auth.Request {
	if r.Status == auth.StatusPending {
		r.Status = auth.StatusExpired
	}
	return r
}

func (s *Service) done(ctx context.Context, r auth.Request, status auth.Status) auth.Request {
	r.Status = status
	if s.Wake != nil {
		s.Wake()
	}
	s.Log.InfoContext(ctx, "a person answered", "request_id", r.ID, "type", r.Need.Type, "session_id", r.Session, "outcome", string(status))
	return r
}

// Page is what a person is shown before they type.
type Page struct {
	Request auth.Request
	Key     auth.Key
	// Host is where the key will be sent.
	Host string
	// Runs is how many sessions wait behind the link, Askers what asks in them, each once, the oldest first.
	Runs   int
	Askers []oauth.Asker
	// Shown is the newest request among them, for [Service.Refuse].
	Shown string
	// Again says that the server has refused a key that was given before.
	Again bool
}

// Page describes what is behind a link and changes nothing.
func (s *Service) Page(ctx context.Context, access auth.Access, id string) (Page, error) {
	behind, err := s.Store.Behind(ctx, id, access)
	if err != nil {
		return Page{}, fmt.Errorf("connect page: %w", err)
	}
	r := behind[0]
	if !sound(r) {
		return Page{}, ErrNotKey
	}
	p := Page{Request: r, Key: *r.Need.Typed, Host: where(r.Need.Slot), Shown: behind[len(behind)-1].ID, Again: r.Need.Refused > 0}
	p.Runs, p.Askers = oauth.Asking(behind)
	return p, nil
}
