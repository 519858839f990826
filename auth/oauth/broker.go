package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/vault"
)

// refreshAhead is how long before its end a token is refreshed.
const refreshAhead = 60 * time.Second

// Broker returns the tokens of one owner for one attempt. Each secret that it reveals goes into scrub, which may be nil;
// the first use of each token is recorded as use.
func (s *Service) Broker(owner agent.Owner, use Use, scrub *auth.Scrubber) auth.Broker {
	if scrub == nil {
		scrub = &auth.Scrubber{}
	}
	return &broker{service: s, owner: owner, uses: NewUses(s.cfg.Store, use), scrub: scrub, fresh: map[string]bool{}, asked: map[string]*memory{}}
}

type broker struct {
	service *Service
	owner   agent.Owner
	uses    *Uses
	scrub   *auth.Scrubber

	mu    sync.Mutex
	fresh map[string]bool // tokens that came by a refresh in this attempt, whoever did it
	asked map[string]*memory
}

// memory is what was found out about one want in this attempt.
type memory struct {
	// turn is held while the want is worked on.
	turn    chan struct{}
	refusal error
	// refreshed: client credentials were fetched anew in this attempt.
	refreshed bool
}

// recall returns the memory of a want, locked; release it.
func (b *broker) recall(ctx context.Context, want auth.Want) (*memory, func(), error) {
	id, err := json.Marshal([]any{want.Auth, want.Server, want.Tool, want.Toolset})
	if err != nil {
		return nil, nil, fmt.Errorf("encode want: %w", err)
	}
	b.mu.Lock()
	m, ok := b.asked[string(id)]
	if !ok {
		m = &memory{turn: make(chan struct{}, 1)}
		b.asked[string(id)] = m
	}
	b.mu.Unlock()
	select {
	case m.turn <- struct{}{}:
		return m, func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("%w: %w", auth.ErrUnavailable, ctx.Err())
	}
}

// Token implements [auth.Broker].
func (b *broker) Token(ctx context.Context, want auth.Want) (auth.AccessToken, error) {
	t, err := aim(want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if t.app {
		return b.appToken(ctx, t, want)
	}
	usable, prior, err := b.find(ctx, t, want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if usable != nil {
		fresh, err := b.current(ctx, *usable, want)
		if err == nil && fresh.Version > usable.Version {
			b.renewed(fresh)
		}
		switch {
		case err == nil && t.fits(fresh, b.owner, want):
			token, err := b.reveal(ctx, fresh, want)
			switch {
			case errors.Is(err, errNoIDToken):
			case !errors.Is(err, vault.ErrCipher):
				return token, err
			default:
				if err := b.service.dropDamaged(ctx, fresh, err); err != nil {
					return auth.AccessToken{}, err
				}
			}
			usable = &fresh
		case err != nil && !errors.Is(err, errDead):
			return auth.AccessToken{}, err
		}
		want.Refused = max(want.Refused, usable.Version)
		prior = usable
	} else if !t.explicit && (prior == nil || prior.Version <= want.Refused) {
		return auth.AccessToken{}, auth.ErrNoToken
	}
	return auth.AccessToken{}, b.require(ctx, t, want, prior)
}

// require makes the [auth.RequiredError] for a want that has no credential, without asking the server.
func (b *broker) require(ctx context.Context, t target, want auth.Want, prior *Grant) error {
	m, release, err := b.recall(ctx, want)
	if err != nil {
		return err
	}
	defer release()
	if m.refusal != nil {
		return m.refusal
	}
	err = b.need(ctx, t, want, nil, prior)
	if !t.explicit && errors.Is(err, auth.ErrMisconfigured) {
		return auth.ErrNoToken // its challenge may say more than its well-known documents
	}
	m.refusal = err
	return err
}

// find looks for a grant that meets the want; prior is the newest that does not.
func (b *broker) find(ctx context.Context, t target, want auth.Want) (usable, prior *Grant, err error) {
	for _, resource := range t.resources {
		grants, err := b.service.cfg.Store.Grants(ctx, GrantQuery{
			Owner: b.owner, Domain: t.domain, Issuer: t.issuer, Resource: resource, Client: t.client(),
		})
		if err != nil {
			return nil, nil, fmt.Errorf("find grant: %w", err)
		}
		for _, g := range grants {
			switch {
			case !t.fits(g, b.owner, want):
			case g.Version > want.Refused && auth.Covers(g.Scopes, want.Auth.Scopes) && (!sendsIDToken(want.Auth) || len(g.IDToken) > 0):
				return &g, nil, nil
			case prior == nil:
				prior = &g
			}
		}
	}
	return nil, prior, nil
}

// renewed notes that a token took the place of another one in this attempt; if it is refused too, another refresh does not
// help.
func (b *broker) renewed(g Grant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fresh[g.state()] = true
}

func (b *broker) isRenewed(g Grant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fresh[g.state()]
}

// state names the tokens that a grant holds at this moment.
func (g Grant) state() string { return g.ID + " " + strconv.FormatInt(g.Version, 10) }

// reveal opens a grant's access token for the caller and records that.
func (b *broker) reveal(ctx context.Context, g Grant, want auth.Want) (auth.AccessToken, error) {
	access, err := b.service.unseal(g.Access, g.ad(columnAccess))
	if err != nil {
		return auth.AccessToken{}, err
	}
	b.scrub.Add(access)
	id, err := b.idToken(g, want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if err := b.uses.Record(ctx, g, want.Tool); err != nil {
		return auth.AccessToken{}, err
	}
	out := auth.AccessToken{Access: access, IDToken: id, Version: g.Version, Scopes: g.Scopes}
	if !g.Expires.IsZero() {
		out.Expires = b.service.cfg.Now().Add(g.Left())
	}
	if sendsIDToken(want.Auth) {
		out.Access, out.Expires = id, endOf(id)
	}
	return out, nil
}

// errNoIDToken: the login has none that is still good.
var errNoIDToken = errors.New("oauth: no ID token")

// idToken opens a grant's ID token, if the definition is about one and it has not ended.
func (b *broker) idToken(g Grant, want auth.Want) (auth.Secret, error) {
	if want.Auth.Type != agent.AuthOpenIDConnect {
		return auth.Secret{}, nil
	}
	id, err := b.service.unseal(g.IDToken, g.ad(columnIDToken))
	if err != nil {
		return auth.Secret{}, err
	}
	b.scrub.Add(id)
	if !endOf(id).After(b.service.cfg.Now()) {
		id = auth.Secret{}
	}
	if sendsIDToken(want.Auth) && id.IsZero() {
		return auth.Secret{}, errNoIDToken
	}
	return id, nil
}

// current returns g or, when what the tool sends is about to end, its successor.
func (b *broker) current(ctx context.Context, g Grant, want auth.Want) (Grant, error) {
	if !sendsIDToken(want.Auth) || len(g.Refresh) == 0 {
		return b.service.fresh(ctx, g, b.scrub)
	}
	id, err := b.service.unseal(g.IDToken, g.ad(columnIDToken))
	if err != nil || endOf(id).Sub(b.service.cfg.Now()) > refreshAhead {
		return b.service.fresh(ctx, g, b.scrub)
	}
	next, err := b.service.refresh(ctx, g, b.scrub)
	if errors.Is(err, auth.ErrUnavailable) && endOf(id).After(b.service.cfg.Now()) {
		return g, nil // it still lives
	}
	return next, err
}
