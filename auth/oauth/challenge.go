package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tarry/auth"
	"tarry/auth/discovery"
)

// Challenged implements [auth.Broker]. What it once said about a want it says again: go-sdk asks twice for one refusal,
// and the person is not to be asked for two logins.
func (b *broker) Challenged(ctx context.Context, want auth.Want, c auth.Challenge) error {
	t, err := aim(want)
	if err != nil {
		return err
	}
	m, release, err := b.recall(ctx, want)
	if err != nil {
		return err
	}
	defer release()
	if m.refusal != nil {
		return m.refusal
	}
	if err := b.learn(ctx, t); err != nil {
		return err
	}
	c.WWWAuthenticate = b.withoutSecrets(c.WWWAuthenticate)
	switch {
	case c.Status != http.StatusUnauthorized && c.Status != http.StatusForbidden:
		return fmt.Errorf("oauth: HTTP %d is no challenge", c.Status)
	case t.app:
		err = b.appRefused(ctx, m, t, want, c)
	case c.Status == http.StatusUnauthorized:
		err = b.unauthorized(ctx, t, want, c)
	default:
		err = b.forbidden(ctx, t, want, c)
	}
	m.refusal = err
	return err
}

// learn tells the scrubber the tokens that the server may have been sent before this attempt.
func (b *broker) learn(ctx context.Context, t target) error {
	for _, resource := range t.resources {
		grants, err := b.service.cfg.Store.Grants(ctx, GrantQuery{
			Owner: b.owner, Domain: t.domain, Issuer: t.issuer, Resource: resource, Client: t.client(),
		})
		if err != nil {
			return fmt.Errorf("find grant: %w", err)
		}
		for _, g := range grants {
			if access, err := b.service.unseal(g.Access, g.ad(columnAccess)); err == nil { // what is damaged was never sent
				b.scrub.Add(access)
			}
			if id, err := b.service.unseal(g.IDToken, g.ad(columnIDToken)); err == nil {
				b.scrub.Add(id)
			}
		}
	}
	return nil
}

// withoutSecrets drops what repeats a secret that was sent: scopes and addresses of a challenge are stored, shown and logged.
func (b *broker) withoutSecrets(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return b.scrub.Scrub(s) != s })
}

// unauthorized: one refresh, one retry, then a login.
func (b *broker) unauthorized(ctx context.Context, t target, want auth.Want, c auth.Challenge) error {
	asked := want
	asked.Refused = max(want.Refused, c.Used)
	if c.Used > 0 {
		if err := b.renew(ctx, t, want, c.Used); !errors.Is(err, errDead) {
			return err // nil: try again
		}
	}
	_, prior, err := b.find(ctx, t, asked)
	if err != nil {
		return err
	}
	return b.need(ctx, t, asked, c.WWWAuthenticate, prior)
}

// renew replaces the token of version used, unless that has happened already: requests that go out together are refused
// together. One refresh is all that a refusal gets; a token that is refused when it is fresh is refused for good.
func (b *broker) renew(ctx context.Context, t target, want auth.Want, used int64) error {
	want.Refused = 0
	usable, _, err := b.find(ctx, t, want)
	switch {
	case err != nil:
		return err
	case usable == nil || usable.Version < used:
		return errDead
	case usable.Version > used:
		b.renewed(*usable)
		return nil
	case b.isRenewed(*usable):
		return errDead
	}
	next, err := b.service.refresh(ctx, *usable, b.scrub)
	if err == nil {
		b.renewed(next)
	}
	return err
}

// forbidden: a login for more scopes, if that is what the server says it wants and the definition allows it.
func (b *broker) forbidden(ctx context.Context, t target, want auth.Want, c auth.Challenge) error {
	challenge, ok := discovery.BearerChallenge(c.WWWAuthenticate)
	if !ok || challenge.Error != "insufficient_scope" {
		return ErrForbidden
	}
	anyScopes := want
	anyScopes.Auth.Scopes = nil
	usable, prior, err := b.find(ctx, t, anyScopes)
	if err != nil {
		return err
	}
	if usable == nil {
		usable = prior
	}
	if usable == nil {
		return b.need(ctx, t, want, c.WWWAuthenticate, nil)
	}
	if auth.Covers(usable.Scopes, challenge.Scopes) {
		// A newer token may have what the one that was sent had not.
		if usable.Version > c.Used {
			return nil
		}
		// They were granted and are not enough: another login for the same would only wear the person down.
		return ErrForbidden
	}
	want.Auth.Scopes = auth.Union(want.Auth.Scopes, challenge.Scopes)
	return b.need(ctx, t, want, c.WWWAuthenticate, usable)
}
