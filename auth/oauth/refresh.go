package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/vault"
)

// errDead: a grant gives no token any more; only a login helps.
var errDead = errors.New("oauth: the login has ended")

// errOtherAccount: the subject of an ID token changed by a refresh.
var errOtherAccount = errors.New("oauth: tokens of another account")

const (
	// leaseMargin is how much longer a lease is than the request under it: time to save.
	leaseMargin = 20 * time.Second
	firstPoll   = 20 * time.Millisecond
	lastPoll    = 400 * time.Millisecond
	// saveAttempts: a rotated token that is not saved is a login lost.
	saveAttempts = 4
)

// fresh returns g or, when it is about to expire, its successor.
func (s *Service) fresh(ctx context.Context, g Grant, scrub *auth.Scrubber) (Grant, error) {
	left := g.Left()
	switch {
	case g.Expires.IsZero() || left > ahead(g):
		return g, nil
	case len(g.Refresh) == 0 && left > 0:
		return g, nil
	}
	next, err := s.refresh(ctx, g, scrub)
	if err != nil && errors.Is(err, auth.ErrUnavailable) && left > 0 {
		return g, nil // it still lives
	}
	return next, err
}

// Left is how much longer the tokens live, by the store's clock; of no meaning when they do not say.
func (g Grant) Left() time.Duration { return g.Life - g.Age }

// ahead is shorter for tokens that live shortly, which would be refreshed at every use otherwise.
func ahead(g Grant) time.Duration { return min(refreshAhead, g.Life/5) }

// refresh replaces the tokens of g, or waits for whoever does so at this moment, in whatever process. Errors: errDead,
// [auth.ErrUnavailable], [auth.ErrMisconfigured].
func (s *Service) refresh(ctx context.Context, g Grant, scrub *auth.Scrubber) (Grant, error) {
	if len(g.Refresh) == 0 {
		return s.newer(ctx, g)
	}
	lease := s.cfg.RefreshTimeout + leaseMargin
	// Long enough to take over from a process that died under its lease.
	waiting, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		now, ours, err := s.cfg.Store.Lease(waiting, g.Slot.Owner, g.ID, g.Version, lease)
		switch {
		case errors.Is(err, ErrNotFound):
			return s.newer(ctx, g)
		case err != nil && waiting.Err() == nil:
			return Grant{}, fmt.Errorf("lease grant: %w", err)
		case err == nil && now.Version > g.Version:
			return now, nil
		case err == nil && ours:
			return s.refreshLeased(ctx, now, scrub)
		}
		if !pause(waiting, poll) {
			return Grant{}, fmt.Errorf("%w: waited for another refresh", auth.ErrUnavailable)
		}
	}
}

// refreshLeased sends the refresh token. From here on the caller's end does not matter: a provider that rotates has
// already taken the old token back.
func (s *Service) refreshLeased(ctx context.Context, g Grant, scrub *auth.Scrubber) (Grant, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.RefreshTimeout+leaseMargin/2)
	defer cancel()
	s.cfg.Fault(ctx, FaultRefreshing)
	next, err := s.requestRefresh(ctx, g, scrub)
	if err != nil {
		return s.refreshFailed(ctx, g, err)
	}
	s.cfg.Fault(ctx, FaultRefreshed)
	for attempt := 1; ; attempt++ {
		saved, err := s.cfg.Store.SaveRefresh(ctx, g.Version, next)
		switch {
		case err == nil && saved:
			return next, nil
		case err == nil:
			return s.newer(ctx, g) // somebody logged in anew meanwhile
		case attempt == saveAttempts:
			return Grant{}, fmt.Errorf("save refresh: %w", err)
		}
		if !pause(ctx, time.Duration(attempt)*100*time.Millisecond) {
			return Grant{}, fmt.Errorf("save refresh: %w", err)
		}
	}
}

func (s *Service) requestRefresh(ctx context.Context, g Grant, scrub *auth.Scrubber) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RefreshTimeout)
	defer cancel()
	old, err := s.unseal(g.Refresh, g.ad(columnRefresh))
	if err != nil {
		return Grant{}, err
	}
	secret, err := s.clientSecret(ctx, g.Client, g.ClientSecret, g.ad(columnClientSecret))
	if err != nil {
		return Grant{}, err
	}
	scrub.Add(old)
	scrub.Add(secret)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Reveal()}}
	if r := resourceParameter(g.Slot.Resource); r != "" {
		form.Set("resource", r)
	}
	got, err := s.requestTokens(ctx, g.Provider, g.Client, secret, form)
	if err != nil {
		return Grant{}, err
	}
	scrub.Add(got.access)
	scrub.Add(got.refresh)
	if got.refresh.IsZero() {
		got.refresh = old
	}
	next := g
	next.Version, next.Updated = g.Version+1, s.cfg.Now()
	// A refresh never widens a grant (RFC 6749 section 6); scopes that a provider leaves out here are found out by use.
	if err := s.setTokens(&next, got.access, got.refresh, got.expires); err != nil {
		return Grant{}, err
	}
	id, err := s.nextIDToken(ctx, g, got, scrub)
	if err != nil {
		return Grant{}, err
	}
	return next, s.setIDToken(&next, id)
}

// nextIDToken is the one that comes with a refresh (OpenID Connect Core section 12.2), or else the old one. The account must
// be the same. A token that cannot be verified is not taken; what it came with has replaced its predecessors already.
func (s *Service) nextIDToken(ctx context.Context, g Grant, got tokens, scrub *auth.Scrubber) (auth.Secret, error) {
	scrub.Add(got.id)
	seen, err := s.identify(ctx, g.Provider, g.Client.ID, got.id, auth.Secret{})
	switch {
	case err != nil:
		s.cfg.Log.WarnContext(ctx, "an ID token that came with a refresh is not used", "grant_id", g.ID, "provider", discovery.Host(g.Provider.Issuer), "err", err)
	case seen.verified && g.Account.Subject != "" && seen.account.Subject != g.Account.Subject:
		return auth.Secret{}, errOtherAccount
	case seen.verified && len(g.IDToken) > 0:
		return got.id, nil
	}
	old, err := s.unseal(g.IDToken, g.ad(columnIDToken))
	scrub.Add(old)
	return old, err
}

// refreshFailed decides what a failure means for the grant. Only invalid_grant, and a dynamic client that is unknown,
// end it, and only at this version.
func (s *Service) refreshFailed(ctx context.Context, g Grant, cause error) (Grant, error) {
	if errors.Is(cause, vault.ErrCipher) {
		if err := s.dropDamaged(ctx, g, cause); err != nil {
			return Grant{}, err
		}
		return Grant{}, fmt.Errorf("%w: %w", errDead, cause)
	}
	if errors.Is(cause, errOtherAccount) {
		s.cfg.Log.ErrorContext(ctx, "a refresh brought the tokens of another account; the login was dropped", "grant_id", g.ID,
			"provider", discovery.Host(g.Provider.Issuer))
		if err := s.cfg.Store.Drop(ctx, g.Slot.Owner, g.ID, g.Version, "another account"); err != nil {
			return Grant{}, fmt.Errorf("drop grant: %w", err)
		}
		return Grant{}, fmt.Errorf("%w: %w", errDead, cause)
	}
	owner, code := g.Slot.Owner, providerCode(cause)
	dynamic := g.Slot.Client == auth.ClientDynamic
	if code == codeInvalidGrant || code == codeInvalidClient && dynamic {
		if newer, err := s.newer(ctx, g); !errors.Is(err, errDead) {
			return newer, err
		}
		if code == codeInvalidClient {
			if err := s.cfg.Store.Unregister(ctx, g.Provider.Issuer, s.redirectURI(g.Provider), g.Client.ID); err != nil {
				return Grant{}, fmt.Errorf("unregister client: %w", err)
			}
		}
		if err := s.cfg.Store.Drop(ctx, owner, g.ID, g.Version, code); err != nil {
			return Grant{}, fmt.Errorf("drop grant: %w", err)
		}
		return Grant{}, fmt.Errorf("%w: %w", errDead, cause)
	}
	if err := s.cfg.Store.Release(ctx, owner, g.ID, g.Version); err != nil {
		return Grant{}, errors.Join(cause, fmt.Errorf("release grant: %w", err))
	}
	switch code {
	case "":
		return Grant{}, cause
	case codeInvalidClient:
		return Grant{}, unknownClient("the provider", g.Client)
	}
	// The provider does not refresh this grant, and says so for good; the grant stays as it is until a login replaces it.
	return Grant{}, fmt.Errorf("%w: %w", errDead, cause)
}

// dropDamaged ends a grant that was damaged, or edited, where it lies: it opens for nobody, so nothing is lost but the
// dead end. Nothing of it has been sent anywhere.
func (s *Service) dropDamaged(ctx context.Context, g Grant, cause error) error {
	s.cfg.Log.ErrorContext(ctx, "a stored login does not open and was dropped; its person will be asked again", "grant_id", g.ID,
		"provider", discovery.Host(g.Provider.Issuer), "err", cause)
	if err := s.cfg.Store.Drop(ctx, g.Slot.Owner, g.ID, g.Version, "damaged"); err != nil {
		return fmt.Errorf("drop grant: %w", err)
	}
	return nil
}

// newer returns the slot's grant if it is newer than g, else errDead.
func (s *Service) newer(ctx context.Context, g Grant) (Grant, error) {
	grants, err := s.cfg.Store.Grants(ctx, GrantQuery{
		Owner: g.Slot.Owner, Domain: g.Slot.Domain, Issuer: g.Slot.Issuer, Resource: g.Slot.Resource, Client: g.Slot.Client,
	})
	if err != nil {
		return Grant{}, fmt.Errorf("find grant: %w", err)
	}
	for _, found := range grants {
		if found.Slot == g.Slot && found.Version > g.Version {
			return found, nil
		}
	}
	return Grant{}, errDead
}
