package keys

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

// Broker returns the keys of one owner for one attempt; what is no key it asks next for. Each secret that it reveals goes into
// scrub, which may be nil; the first use of each is recorded as use.
func (s *Service) Broker(next auth.Broker, owner agent.Owner, use oauth.Use, scrub *auth.Scrubber) auth.Broker {
	if scrub == nil {
		scrub = &auth.Scrubber{}
	}
	return &broker{service: s, next: next, owner: owner, uses: oauth.NewUses(s.Store, use), scrub: scrub}
}

type broker struct {
	service *Service
	next    auth.Broker
	owner   agent.Owner
	uses    *oauth.Uses
	scrub   *auth.Scrubber
}

// Token implements [auth.Broker].
func (b *broker) Token(ctx context.Context, want auth.Want) (auth.AccessToken, error) {
	if !want.Auth.Typed() {
		return b.next.Token(ctx, want) //nolint:wrapcheck // handed on
	}
	slot, err := aim(b.owner, want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if want.Auth.Secret != "" {
		return b.own(ctx, slot, want)
	}
	g, err := b.find(ctx, slot, want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if g != nil && g.Version > want.Refused {
		token, err := b.reveal(ctx, *g, want)
		if !errors.Is(err, vault.ErrCipher) {
			return token, err
		}
		// Nobody can mend it, and it must not stand in the way of another.
		b.service.Log.WarnContext(ctx, "a stored key cannot be read and is asked for again", "app", b.owner.App, "provider", slot.Issuer, "err", err)
		if err := b.service.Store.Drop(ctx, b.owner, g.ID, g.Version, "damaged"); err != nil {
			return auth.AccessToken{}, fmt.Errorf("drop key: %w", err)
		}
		want.Refused = g.Version
	}
	return auth.AccessToken{}, required(slot, want)
}

// Challenged implements [auth.Broker]. A refused key is asked for again: the person may have typed another one, or theirs has
// been replaced.
func (b *broker) Challenged(ctx context.Context, want auth.Want, c auth.Challenge) error {
	if !want.Auth.Typed() {
		return b.next.Challenged(ctx, want, c) //nolint:wrapcheck // handed on
	}
	slot, err := aim(b.owner, want)
	switch {
	case err != nil:
		return err
	case c.Status != http.StatusUnauthorized:
		return oauth.ErrForbidden
	case want.Auth.Secret != "":
		return misconfigured("%s refuses the app's own key, %s", where(slot), want.Auth.Secret)
	}
	g, err := b.find(ctx, slot, want)
	if err != nil {
		return err
	}
	if g != nil && g.Version > c.Used {
		return nil // typed anew since
	}
	want.Refused = max(want.Refused, c.Used)
	return required(slot, want)
}

// find returns the grant of a slot, or nil. What is stored is compared with where the key is about to go: a secret is not sent
// on the strength of a query alone.
func (b *broker) find(ctx context.Context, slot auth.Slot, want auth.Want) (*oauth.Grant, error) {
	grants, err := b.service.Store.Grants(ctx, oauth.GrantQuery{Owner: slot.Owner, Domain: slot.Domain, Issuer: slot.Issuer, Resource: slot.Resource, Client: slot.Client})
	if err != nil {
		return nil, fmt.Errorf("find key: %w", err)
	}
	for _, g := range grants {
		if g.Slot == slot && (want.Server == "" || discovery.Covers(place(g.Slot), want.Server)) {
			return &g, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

func (b *broker) reveal(ctx context.Context, g oauth.Grant, want auth.Want) (auth.AccessToken, error) {
	plain, err := b.service.Vault.Open(g.Access, ad(g))
	if err != nil {
		return auth.AccessToken{}, fmt.Errorf("open key: %w", err)
	}
	v, err := decode(*auth.KeyOf(want.Auth), plain)
	if err != nil {
		return auth.AccessToken{}, err
	}
	learn(v, b.scrub)
	if err := b.uses.Record(ctx, g, want.Tool); err != nil {
		return auth.AccessToken{}, err //nolint:wrapcheck // says what it was doing
	}
	return auth.AccessToken{Access: v.Secret, Username: v.Username, Version: g.Version}, nil
}

// own is the app's own key: nobody is asked, and nothing is kept.
func (b *broker) own(ctx context.Context, slot auth.Slot, want auth.Want) (auth.AccessToken, error) {
	a := want.Auth
	resolve := func(source agent.Source) (string, error) {
		secret, err := b.service.Secrets(ctx, source)
		if err != nil {
			return "", fmt.Errorf("%w: secret %s:%s: %w", auth.ErrMisconfigured, source.Kind, source.Name, err)
		}
		return secret.Reveal(), nil
	}
	secret, err := agent.SecretTemplate(a.Secret).Expand(resolve)
	if err != nil {
		return auth.AccessToken{}, fmt.Errorf("app's own key: %w", err)
	}
	user, err := a.Username.Expand(resolve)
	if err != nil {
		return auth.AccessToken{}, fmt.Errorf("app's own user name: %w", err)
	}
	k := *auth.KeyOf(a)
	v := trimmed(auth.KeyValue{Secret: auth.NewSecret(secret), Username: auth.NewSecret(user)}, k)
	learn(v, b.scrub)
	if err := check(v, k); err != nil {
		return auth.AccessToken{}, misconfigured("%s: %s", a.Secret, err.Error())
	}
	if err := b.uses.Record(ctx, oauth.Grant{Slot: slot}, want.Tool); err != nil {
		return auth.AccessToken{}, err //nolint:wrapcheck // says what it was doing
	}
	return auth.AccessToken{Access: v.Secret, Username: v.Username}, nil
}
