package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tarry/auth"
)

// Discoverer reads metadata. It is safe for concurrent use and keeps nothing.
type Discoverer struct {
	// HTTP is the guarded client: every address here comes from somebody else.
	HTTP *http.Client
	// AllowLoopback permits plain http to loopback, for development and tests.
	AllowLoopback bool
}

// Found is who gives the credential for a server.
type Found struct {
	// Resource is the server's identifier as its metadata writes it.
	Resource string
	// Scopes are those to ask for: the challenge's, else all that the resource's metadata lists, else none.
	Scopes []string
	// Challenged says that Scopes come from the challenge and so are what the server insists on.
	Challenged bool
	Provider   auth.Provider
}

// maxServers bounds how many of a resource's authorization servers are tried.
const maxServers = 5

// Rules are what a definition expects of a server, and what it lets pass. The zero value is the MCP specification.
type Rules struct {
	// Issuer must be among those that the server names; empty means that any will do.
	Issuer string
	// AllowMissingPKCE accepts a provider whose metadata lists no code challenge methods.
	AllowMissingPKCE bool
	// Legacy takes the origin of a server without resource metadata for its provider (MCP authorization, 2025-03-26).
	Legacy bool
	// NoLogin is for tokens that the client gets by itself: a provider without authorization endpoint will do.
	NoLogin bool
}

// Server discovers what the MCP server at the given URL asked for with WWW-Authenticate headers; there may be none.
// Errors are [auth.ErrUnavailable] or [auth.ErrMisconfigured].
func (d *Discoverer) Server(ctx context.Context, server string, wwwAuthenticate []string, rules Rules) (Found, error) {
	challenge, _ := BearerChallenge(wwwAuthenticate)
	meta, err := d.resource(ctx, server, challenge.ResourceMetadata)
	if errors.Is(err, errNoResource) && rules.Legacy && challenge.ResourceMetadata == "" {
		return d.legacy(ctx, server, challenge, rules.Issuer)
	}
	if err != nil {
		return Found{}, err
	}
	out := Found{Resource: meta.Resource, Scopes: challenge.Scopes, Challenged: len(challenge.Scopes) > 0}
	if !out.Challenged {
		out.Scopes = shortScopes(cleanScopes(meta.ScopesSupported))
	}
	servers := meta.AuthorizationServers
	if rules.Issuer != "" {
		servers = slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return !sameBut(s, rules.Issuer) })
		if len(servers) == 0 {
			return Found{}, moved(server, meta.AuthorizationServers[0], rules.Issuer)
		}
	}
	var last error
	for i, s := range servers {
		if i == maxServers {
			break
		}
		out.Provider, err = d.provider(ctx, s, rules.pkce())
		if err == nil {
			return out, nil
		}
		if errors.Is(err, auth.ErrUnavailable) {
			return Found{}, err // going on would make the choice a matter of luck
		}
		last = err
	}
	return Found{}, last
}

// moved: the client of a definition is good at one provider; its id and secret are not shown to another.
func moved(server, names, expected string) error {
	return fmt.Errorf("%w: %s is protected by %s, and the definition's client belongs to %s: "+
		"register a client there and change client_id and issuer", auth.ErrMisconfigured, Host(server), Host(names), Host(expected))
}

// Issuer discovers the provider with the given issuer by OpenID Connect Discovery or RFC 8414. Where a provider has a document
// of each, the keys of its ID tokens are in the former.
func (d *Discoverer) Issuer(ctx context.Context, issuer string) (auth.Provider, error) {
	p, err := d.provider(ctx, issuer, pkceIgnored)
	if err != nil || p.JWKSURI != "" {
		return p, err
	}
	u, _ := parse(issuer)
	for _, place := range wellKnown(u)[1:] {
		var meta serverMetadata
		err := d.get(ctx, place, &meta)
		switch {
		case errors.Is(err, errAbsent):
		case err != nil:
			return auth.Provider{}, err
		case meta.Issuer == p.Issuer && meta.JWKSURI != "":
			p.JWKSURI, p.IDTokenAlgs = d.optional(meta.JWKSURI), cleanScopes(meta.IDTokenAlgs)
			return p, nil
		}
	}
	return p, nil
}

type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	ScopesSupported       []string `json:"scopes_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	IssParameter          bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMetadata        bool     `json:"client_id_metadata_document_supported"`
	AssertionAlgs         []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	JWKSURI               string   `json:"jwks_uri"`
	IDTokenAlgs           []string `json:"id_token_signing_alg_values_supported"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
}

// provider reads authorization server metadata.
func (d *Discoverer) provider(ctx context.Context, issuer string, pkce pkceRule) (auth.Provider, error) {
	u, ok := parse(issuer)
	if !ok || !usable(issuer, d.AllowLoopback) || u.RawQuery != "" {
		return auth.Provider{}, fmt.Errorf("%w: issuer is not an https URL without query", auth.ErrMisconfigured)
	}
	foreign := false
	for _, place := range wellKnown(u) {
		var meta serverMetadata
		err := d.get(ctx, place, &meta)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return auth.Provider{}, err
		}
		// RFC 8414 section 3.3: metadata of another issuer must not be used. It may be a catch-all's, so look on.
		if !sameBut(meta.Issuer, issuer) {
			foreign = true
			continue
		}
		return d.check(meta, u.Host, pkce)
	}
	if foreign {
		return auth.Provider{}, fmt.Errorf("%w: the metadata of %s names another issuer", auth.ErrMisconfigured, u.Host)
	}
	return auth.Provider{}, fmt.Errorf("%w: %s publishes %w", auth.ErrMisconfigured, u.Host, errNoServer)
}

// wellKnown lists where the metadata of an issuer can be, in the order that the MCP specification sets.
func wellKnown(u *url.URL) []string {
	base, path := origin(u), strings.TrimSuffix(u.EscapedPath(), "/")
	out := []string{base + "/.well-known/oauth-authorization-server" + path, base + "/.well-known/openid-configuration" + path}
	if path != "" {
		out = append(out, base+path+"/.well-known/openid-configuration")
	}
	return out
}

func (d *Discoverer) check(meta serverMetadata, host string, pkce pkceRule) (auth.Provider, error) {
	bad := func(what string) (auth.Provider, error) {
		return auth.Provider{}, fmt.Errorf("%w: %s: %s", auth.ErrMisconfigured, host, what)
	}
	for _, e := range []struct {
		name, url string
		required  bool
	}{
		{"authorization endpoint", meta.AuthorizationEndpoint, pkce != noCode},
		{"token endpoint", meta.TokenEndpoint, true},
		{"registration endpoint", meta.RegistrationEndpoint, false},
		{"revocation endpoint", meta.RevocationEndpoint, false},
	} {
		switch {
		case e.url == "" && e.required:
			return bad("metadata has no " + e.name)
		case e.url != "" && !usable(e.url, d.AllowLoopback):
			return bad(e.name + " is not an https URL")
		}
	}
	if why := pkce.refuses(meta.ChallengeMethods); why != "" {
		return bad(why)
	}
	return auth.Provider{
		Issuer:                meta.Issuer,
		AuthorizationEndpoint: meta.AuthorizationEndpoint,
		TokenEndpoint:         meta.TokenEndpoint,
		RegistrationEndpoint:  meta.RegistrationEndpoint,
		ClientMetadata:        meta.ClientMetadata,
		RevocationEndpoint:    meta.RevocationEndpoint,
		IssAdvertised:         meta.IssParameter,
		Discovered:            true,
		JWKSURI:               d.optional(meta.JWKSURI),
		DeviceEndpoint:        d.optional(meta.DeviceEndpoint),
		AuthMethods:           cleanScopes(meta.AuthMethods),
		AssertionAlgs:         cleanScopes(meta.AssertionAlgs),
		IDTokenAlgs:           cleanScopes(meta.IDTokenAlgs),
		Scopes:                cleanScopes(meta.ScopesSupported),
	}, nil
}

// optional leaves out an endpoint that most logins do without, so that only those that need it fail where it cannot be used.
func (d *Discoverer) optional(endpoint string) string {
	if endpoint == "" || !usable(endpoint, d.AllowLoopback) {
		return ""
	}
	return endpoint
}
