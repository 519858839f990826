package discovery

import (
	"context"
	"errors"
	"fmt"

	"tarry/auth"
)

// errNoServer marks that an issuer publishes no metadata at all.
var errNoServer = errors.New("no authorization server metadata")

// legacy is MCP authorization of 2025-03-26, sections 2.3.2 and 2.3.3: the server's origin is its provider, with the
// metadata of RFC 8414 if it has any, else with endpoints at fixed paths. Metadata that is wrong is not replaced by a
// guess.
func (d *Discoverer) legacy(ctx context.Context, server string, challenge Bearer, issuer string) (Found, error) {
	u, _ := parse(server)
	base := origin(u)
	if issuer != "" && !sameBut(issuer, base) {
		return Found{}, moved(server, base, issuer)
	}
	resource, _ := Canonical(server)
	out := Found{Resource: resource, Scopes: challenge.Scopes, Challenged: len(challenge.Scopes) > 0}
	var err error
	out.Provider, err = d.provider(ctx, base, pkceIgnored)
	if !errors.Is(err, errNoServer) {
		return out, err
	}
	if !usable(base, d.AllowLoopback) {
		return Found{}, fmt.Errorf("%w: %s is not https", auth.ErrMisconfigured, u.Host)
	}
	out.Provider = auth.Provider{
		Issuer: base, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
	}
	return out, nil
}
