package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// need asks who gives the credential and returns the [auth.RequiredError], or what stands in its way. prior is a grant
// that is not enough.
func (b *broker) need(ctx context.Context, t target, want auth.Want, wwwAuthenticate []string, prior *Grant) error {
	var n auth.Need
	var err error
	if t.explicit {
		n, err = b.explicitNeed(ctx, t, want)
	} else {
		n, err = b.discoveredNeed(ctx, t, want, wwwAuthenticate)
	}
	if err != nil {
		return err
	}
	if prior != nil && !t.anyClient() && want.Auth.Issuer == "" && prior.Slot.Issuer != n.Slot.Issuer {
		return misconfigured("%s is protected by %s now, and client %q was good at %s: register a client there, put its client_id into the definition and name its issuer under tarry",
			discovery.Host(want.Server), discovery.Host(n.Slot.Issuer), want.Auth.ClientID, discovery.Host(prior.Slot.Issuer))
	}
	limit := want.Auth.MaxScopes
	if len(limit) > 0 && !auth.Covers(limit, n.Scopes) {
		return fmt.Errorf("%w: %s", ErrScopeLimit, shorten(without(n.Scopes, limit)))
	}
	// A login replaces the grant, so it must not lose what other tools of the app were granted before.
	if prior != nil && sameCredential(prior.Slot, n.Slot) {
		kept := within(prior.Scopes, limit)
		switch {
		case !t.explicit && wwwAuthenticate == nil:
			n.Scopes = auth.Union(want.Auth.Scopes, kept) // what the server asked for when it was asked
		case prior.Version > want.Refused || len(n.Scopes) == 0:
			n.Scopes = auth.Union(n.Scopes, kept)
		}
	}
	n.Type, n.Key = typeOf(want.Auth), keyOf(want.Auth, n.Slot)
	n.Tool, n.Toolset, n.Server = want.Tool, want.Toolset, want.Server
	if prior == nil || prior.Slot == n.Slot { // versions of another slot say nothing about this one's
		n.Refused = want.Refused
	}
	if n.Device = want.Auth.Grant == agent.GrantDeviceCode; n.Device && n.Provider.DeviceEndpoint == "" {
		return misconfigured("%s has no device endpoint (device_authorization_endpoint): remove grant device_code, or write the flow deviceCode out", discovery.Host(n.Provider.Issuer))
	}
	n.IDToken = sendsIDToken(want.Auth)
	n.Client.Params, n.Relaxed, n.Limit = want.Auth.AuthorizationParams, relaxed(want.Auth), limit
	return &auth.RequiredError{Need: n}
}

func (b *broker) explicitNeed(ctx context.Context, t target, want auth.Want) (auth.Need, error) {
	a := want.Auth
	n := auth.Need{
		Slot: t.slot(b.owner), Scopes: auth.Union(a.Scopes),
		Provider: auth.Provider{Issuer: t.issuer, AuthorizationEndpoint: a.AuthorizationURL, TokenEndpoint: a.TokenURL, DeviceEndpoint: a.DeviceURL},
		Client:   clientOf(a),
	}
	if (a.AuthorizationURL != "" || a.DeviceURL != "") && a.TokenURL != "" {
		return n, b.verifiable(ctx, &n.Provider, a)
	}
	var err error
	if n.Provider, err = b.service.cfg.Discover.Issuer(ctx, a.Issuer); err != nil {
		return n, fmt.Errorf("discover issuer of credential %q: %w", a.Key, err)
	}
	n.Client, err = preregistered(n.Client, n.Provider)
	return n, err
}

// verifiable finds the keys of ID tokens where the endpoints are written out and an issuer is named: one that publishes none
// is a label, and what its ID tokens say is not believed.
func (b *broker) verifiable(ctx context.Context, p *auth.Provider, a agent.Auth) error {
	if a.Type != agent.AuthOpenIDConnect || a.Issuer == "" {
		return nil
	}
	found, err := b.service.cfg.Discover.Issuer(ctx, a.Issuer)
	switch {
	case err == nil && found.Issuer == p.Issuer && found.JWKSURI != "":
		p.JWKSURI, p.IDTokenAlgs = found.JWKSURI, found.IDTokenAlgs
		return nil
	case err == nil && found.Issuer != p.Issuer:
		return misconfigured("the issuer of credential %q calls itself %s, and ID tokens name it so: write it like that", a.Key, found.Issuer)
	case a.UseIDToken && err != nil:
		return fmt.Errorf("discover issuer of credential %q: %w", a.Key, err)
	case a.UseIDToken:
		return misconfigured("%s publishes no keys (jwks_uri), and the definition uses its ID tokens", discovery.Host(a.Issuer))
	case errors.Is(err, auth.ErrUnavailable):
		return fmt.Errorf("discover issuer of credential %q: %w", a.Key, err)
	}
	return nil
}

func (b *broker) discoveredNeed(ctx context.Context, t target, want auth.Want, wwwAuthenticate []string) (auth.Need, error) {
	a := want.Auth
	found, err := b.service.cfg.Discover.Server(ctx, want.Server, wwwAuthenticate, discovery.Rules{
		Issuer: a.Issuer, AllowMissingPKCE: a.AllowMissingPKCE, Legacy: a.LegacyAuthorization, NoLogin: t.app || a.Grant == agent.GrantDeviceCode,
	})
	if err != nil {
		return auth.Need{}, fmt.Errorf("discover %s: %w", discovery.Host(want.Server), err)
	}
	resource := t.slotResource(found.Resource)
	if !slices.Contains(t.resources, resource) {
		return auth.Need{}, misconfigured("%s calls itself by another resource than the definition", discovery.Host(want.Server))
	}
	if err := b.learn(ctx, t); err != nil {
		return auth.Need{}, err
	}
	scopes := b.withoutSecrets(found.Scopes)
	if !found.Challenged {
		scopes = within(scopes, a.MaxScopes) // the server lists what exists; what we ask for is our choice
	}
	n := auth.Need{Slot: t.slot(b.owner), Scopes: auth.Union(scopes, a.Scopes), Provider: found.Provider}
	n.Slot.Resource = resource
	n.Slot.Issuer = found.Provider.Issuer
	if a.Issuer != "" {
		n.Slot.Issuer = a.Issuer
	}
	if challenge, ok := discovery.BearerChallenge(wwwAuthenticate); ok {
		n.Metadata = challenge.ResourceMetadata
	}
	n.Movable = a.Issuer == "" && t.anyClient()
	if !t.anyClient() {
		n.Client, err = preregistered(clientOf(a), n.Provider)
		return n, err
	}
	n.Client, n.Slot.Client, err = b.service.ownClient(n.Provider)
	return n, err
}

// sameCredential: one provider may come to know us by another kind of client; what the app was granted stays the same.
func sameCredential(a, b auth.Slot) bool {
	own := func(client string) bool { return client == auth.ClientMetadata || client == auth.ClientDynamic }
	if own(a.Client) && own(b.Client) {
		a.Client = b.Client
	}
	return a == b
}

// preregistered settles how a client of a discovered provider authenticates.
func preregistered(c auth.Client, p auth.Provider) (auth.Client, error) {
	if c.Auth != "" || c.Secret == "" {
		return c, nil
	}
	var err error
	c.Auth, err = chooseAuth(p.AuthMethods)
	return c, err
}

const (
	relaxedPKCE   = "allow_missing_pkce"
	relaxedLegacy = "legacy_authorization"
)

// relaxed names the rules that a definition gives up, as it writes them.
func relaxed(a agent.Auth) (out []string) {
	for _, r := range []struct {
		name string
		on   bool
	}{
		{"omit_resource", a.OmitResource}, {relaxedPKCE, a.AllowMissingPKCE}, {relaxedLegacy, a.LegacyAuthorization},
	} {
		if r.on {
			out = append(out, r.name)
		}
	}
	return out
}

// within keeps the scopes that are in limit; an empty limit is none.
func within(scopes, limit []string) []string {
	if len(limit) == 0 {
		return scopes
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(limit, s) })
}

// without returns nil if nothing is left.
func without(scopes, known []string) (left []string) {
	for _, s := range scopes {
		if !slices.Contains(known, s) {
			left = append(left, s)
		}
	}
	return left
}

// shorten makes a server's scopes fit for a message.
func shorten(scopes []string) string {
	const most, longest = 5, 64
	out := ""
	for i, s := range scopes {
		if i == most {
			return out + " …"
		}
		if len(s) > longest {
			s = s[:longest] + "…"
		}
		out += " " + s
	}
	return strings.TrimPrefix(out, " ")
}
