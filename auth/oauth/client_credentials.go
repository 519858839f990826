package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// appToken is [broker.Token] for a credential of the app itself (RFC 6749 section 4.4): nobody is asked.
func (b *broker) appToken(ctx context.Context, t target, want auth.Want) (auth.AccessToken, error) {
	want = unasked(want)
	usable, _, err := b.find(ctx, t, want)
	if err != nil {
		return auth.AccessToken{}, err
	}
	if usable == nil || due(*usable) {
		g, err := b.fetch(ctx, t, want, nil)
		switch {
		case err == nil:
			usable = &g
		case usable != nil && errors.Is(err, auth.ErrUnavailable) && usable.Left() > 0: // it still lives
		case usable == nil && !t.explicit && errors.Is(err, errSilent):
			return auth.AccessToken{}, auth.ErrNoToken // its challenge may say more than its well-known documents
		default:
			return auth.AccessToken{}, err
		}
	}
	return b.reveal(ctx, *usable, want)
}

// unasked limits a credential that no person is asked for to the scopes that its definition names: there is nobody to
// refuse what the server wants beyond. Where it names none, the first token is for what the server says it needs, as the
// specification of MCP has it; what a server names when it has got a token is asked for only within max_scopes.
func unasked(want auth.Want) auth.Want {
	if len(want.Auth.MaxScopes) == 0 {
		want.Auth.MaxScopes = want.Auth.Scopes
	}
	return want
}

// due says whether the tokens are to be replaced before they are used.
func due(g Grant) bool { return !g.Expires.IsZero() && g.Left() <= ahead(g) }

// errSilent: the server's documents do not say who gives the credential.
var errSilent = errors.New("oauth: discovery")

// appRefused is [broker.Challenged] for such a credential: one new token, and no more. Whoever would be asked could do
// nothing about it.
func (b *broker) appRefused(ctx context.Context, m *memory, t target, want auth.Want, c auth.Challenge) error {
	want = unasked(want)
	known := want
	known.Auth.Scopes, known.Refused = nil, 0
	usable, prior, err := b.find(ctx, t, known)
	if err != nil {
		return err
	}
	if usable == nil {
		usable = prior
	}
	if c.Status == http.StatusForbidden {
		challenge, ok := discovery.BearerChallenge(c.WWWAuthenticate)
		if !ok || challenge.Error != "insufficient_scope" {
			return ErrForbidden
		}
		if usable != nil && auth.Covers(usable.Scopes, challenge.Scopes) && usable.Version <= c.Used {
			return ErrForbidden
		}
		var given []string
		if usable != nil {
			given = usable.Scopes
		}
		if more := without(challenge.Scopes, given); len(want.Auth.MaxScopes) == 0 && len(more) > 0 {
			return beyondDefinition(want, more)
		}
		want.Auth.Scopes = auth.Union(want.Auth.Scopes, challenge.Scopes)
	} else if len(want.Auth.MaxScopes) == 0 && c.Used > 0 {
		c.WWWAuthenticate = withoutScopes(c.WWWAuthenticate)
	}
	switch {
	case usable != nil && usable.Version > c.Used && auth.Covers(usable.Scopes, want.Auth.Scopes):
		return nil
	case m.refreshed:
		return misconfigured("%s refuses the token that client %q was just given: its provider and the definition's resource, scopes and max_scopes do not fit the server",
			discovery.Host(want.Server), want.Auth.ClientID)
	}
	m.refreshed = true
	want.Refused = max(want.Refused, c.Used)
	_, err = b.fetch(ctx, t, want, c.WWWAuthenticate)
	return err
}

// fetch returns a grant for want that is neither refused nor due: a new one, or what another caller, in whatever
// process, has fetched meanwhile. Two processes that have none at all may both fetch one; the later is kept.
func (b *broker) fetch(ctx context.Context, t target, want auth.Want, wwwAuthenticate []string) (Grant, error) {
	n, err := b.appNeed(ctx, t, want, wwwAuthenticate)
	if err != nil {
		return Grant{}, err
	}
	s, lease := b.service, b.service.cfg.RefreshTimeout+leaseMargin
	waiting, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	release, err := s.fetching.take(waiting, n.Slot.ID())
	if err != nil {
		return Grant{}, fmt.Errorf("%w: waited for another token request", auth.ErrUnavailable)
	}
	defer release()
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		usable, prior, err := b.find(waiting, t, want)
		switch {
		case err != nil:
			return Grant{}, err
		case usable != nil && !due(*usable):
			return *usable, nil
		case usable != nil:
			prior = usable
		}
		if prior == nil || prior.Slot != n.Slot {
			return s.requestOwn(ctx, n, nil, b.scrub)
		}
		n.Scopes = auth.Union(n.Scopes, within(prior.Scopes, want.Auth.MaxScopes)) // other tools have needed them
		_, ours, err := s.cfg.Store.Lease(waiting, b.owner, prior.ID, prior.Version, lease)
		switch {
		case err == nil && ours:
			return s.requestOwn(ctx, n, prior, b.scrub)
		case err != nil && !errors.Is(err, ErrNotFound) && waiting.Err() == nil:
			return Grant{}, fmt.Errorf("lease grant: %w", err)
		}
		if !pause(waiting, poll) {
			return Grant{}, fmt.Errorf("%w: waited for another token request", auth.ErrUnavailable)
		}
	}
}

// appNeed says where the token comes from: from the definition, or from the documents of the server and of the one
// issuer that the client belongs to.
func (b *broker) appNeed(ctx context.Context, t target, want auth.Want, wwwAuthenticate []string) (auth.Need, error) {
	a := want.Auth
	var n auth.Need
	switch {
	case a.Type == agent.AuthServiceAccount:
		n = auth.Need{
			Slot: t.slot(b.owner), Scopes: auth.Union(a.Scopes), Provider: auth.Provider{Issuer: t.issuer}, Client: serviceAccountClient(a),
		}
	case t.explicit:
		n = auth.Need{
			Slot: t.slot(b.owner), Scopes: auth.Union(a.Scopes), Provider: auth.Provider{Issuer: t.issuer, TokenEndpoint: a.TokenURL},
			Client: clientOf(a),
		}
	default:
		var err error
		if n, err = b.discoveredNeed(ctx, t, want, wwwAuthenticate); err != nil {
			if errors.Is(err, auth.ErrMisconfigured) && wwwAuthenticate == nil {
				return n, fmt.Errorf("%w: %w", errSilent, err)
			}
			return n, err
		}
	}
	if limit := a.MaxScopes; len(limit) > 0 && !auth.Covers(limit, n.Scopes) {
		return n, beyondDefinition(want, without(n.Scopes, limit))
	}
	return n, nil
}

// beyondDefinition: a server that has the token wants one for more, and nobody but the definition's author can say yes.
func beyondDefinition(want auth.Want, scopes []string) error {
	return fmt.Errorf("%w: %w", ErrScopeLimit, misconfigured("%s wants %s, and nobody is asked: list that in max_scopes under tarry if client %q may use it there",
		discovery.Host(want.Server), shorten(scopes), want.Auth.ClientID))
}

// withoutScopes keeps of a challenge where the server's documents are.
func withoutScopes(challenges []string) []string {
	c, ok := discovery.BearerChallenge(challenges)
	if !ok || c.ResourceMetadata == "" || strings.ContainsAny(c.ResourceMetadata, "\"\\") {
		return []string{"Bearer"}
	}
	return []string{`Bearer resource_metadata="` + c.ResourceMetadata + `"`}
}

// requestOwn is the token request; prior is the grant under our lease that it replaces, nil for none.
func (s *Service) requestOwn(ctx context.Context, n auth.Need, prior *Grant, scrub *auth.Scrubber) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RefreshTimeout+leaseMargin/2)
	defer cancel()
	g, err := s.requestAppToken(ctx, n, scrub)
	if err == nil {
		if g, err = s.cfg.Store.Keep(ctx, g); err == nil {
			return g, nil
		}
		err = fmt.Errorf("keep token: %w", err)
	}
	if prior != nil {
		if releaseErr := s.cfg.Store.Release(context.WithoutCancel(ctx), prior.Slot.Owner, prior.ID, prior.Version); releaseErr != nil {
			return Grant{}, errors.Join(err, fmt.Errorf("release grant: %w", releaseErr))
		}
	}
	return Grant{}, err
}

// requestAppToken is RFC 6749 section 4.4.2, with resource (RFC 8707). A refresh token in the answer is against section
// 4.4.3 and not kept.
func (s *Service) requestAppToken(ctx context.Context, n auth.Need, scrub *auth.Scrubber) (Grant, error) {
	if n.Client.Auth == authServiceAccount {
		return s.requestServiceAccount(ctx, n, scrub)
	}
	asking, cancel := context.WithTimeout(ctx, s.cfg.RefreshTimeout)
	defer cancel()
	secret, err := s.clientSecret(asking, n.Client, nil, Flow{}.ad(columnClientSecret))
	if err != nil {
		return Grant{}, err
	}
	scrub.Add(secret)
	form := url.Values{"grant_type": {agent.GrantClientCredentials}}
	if len(n.Scopes) > 0 {
		form.Set("scope", strings.Join(n.Scopes, " "))
	}
	resource := resourceParameter(n.Slot.Resource)
	if resource != "" {
		form.Set("resource", resource)
	}
	got, err := s.requestTokens(asking, n.Provider, n.Client, secret, form)
	if err != nil {
		return Grant{}, refusedClient(n, resource, err)
	}
	scrub.Add(got.access)
	scrub.Add(got.refresh)
	now := s.cfg.Now()
	g := Grant{
		ID: uuid.NewString(), Slot: n.Slot, Scopes: auth.Union(n.Scopes, got.scopes), Provider: n.Provider, Client: n.Client,
		Created: now, Updated: now,
	}
	return g, s.setTokens(&g, got.access, auth.Secret{}, got.expires)
}

// refusedClient says what an operator can do: nobody else can.
func refusedClient(n auth.Need, resource string, cause error) error {
	host := discovery.Host(n.Provider.TokenEndpoint)
	switch code := providerCode(cause); code {
	case "":
		return cause
	case codeInvalidTarget, codeInvalidScope:
		return explain(Flow{Resource: resource, Scopes: n.Scopes}, fmt.Errorf("%w: %w", misconfigured("token request at %s", host), cause))
	case codeInvalidClient:
		return unknownClient(host, n.Client)
	default:
		return misconfigured("%s gives client %q no token (%s): allow it the grant client_credentials", host, n.Client.ID, code)
	}
}
