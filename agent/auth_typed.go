package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Values of [Auth.In], as in OpenAPI 3.
const (
	InHeader = "header"
	InQuery  = "query"
	InCookie = "cookie"
)

// Values of [Auth.Scheme], of those that are registered for HTTP authentication.
const (
	SchemeBasic  = "basic"
	SchemeBearer = "bearer"
)

// Typed says whether the credential is one that a person types in, or a reference to what somebody has typed in before: an API
// key, a user name and password, or a bearer token.
func (a *Auth) Typed() bool { return a.Type == AuthAPIKey || a.Type == AuthHTTP }

const (
	schemeField = "auth_scheme"
	apiKeyField = "auth_credential.api_key"
	httpField   = "auth_credential.http.credentials"
)

func (p *authProblems) key() {
	if p.Type == AuthAPIKey {
		p.apiKey()
	} else {
		p.http()
	}
	if p.Secret != "" {
		if _, err := p.Secret.Parse(); err != nil {
			p.add(p.secretField(), "%v", err)
		}
	}
	if p.Resource != "" && !webURL(p.Resource) {
		p.add("tarry.resource", noWebURL)
	}
	p.noLogin()
}

// secretField is where a definition has [Auth.Secret].
func (p *authProblems) secretField() string {
	switch {
	case p.Type == AuthAPIKey:
		return apiKeyField
	case p.Scheme == SchemeBasic:
		return httpField + ".password"
	}
	return httpField + ".token"
}

func (p *authProblems) apiKey() {
	if !slices.Contains([]string{InHeader, InQuery, InCookie}, p.In) {
		p.add(schemeField+".in", "%q is not one of header, query, cookie", p.In)
	}
	switch {
	case p.Name == "":
		p.add(schemeField+".name", "missing; write what the server calls the %s", orKey(p.In))
	case !regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~\\[\\]-]{1,100}$").MatchString(p.Name):
		p.add(schemeField+".name", "must be letters, digits, dashes and the like, at most 100")
	case p.In != InQuery && strings.ContainsAny(p.Name, "[]"):
		p.add(schemeField+".name", "brackets are for names in a query")
	case p.In == InHeader && ownHeader(p.Name):
		p.add(schemeField+".name", "%s says something else to the server; name the header that the server wants the key in", p.Name)
	}
	if p.Scheme != "" {
		p.add(schemeField+".scheme", "an apiKey has none; remove it or write type http")
	}
	if p.Username != "" {
		p.add(httpField+".username", "an apiKey has none; remove it or write type http with scheme basic")
	}
}

func orKey(in string) string {
	if in == "" {
		return "key"
	}
	return in
}

// ownHeader says whether a header is part of the protocol, so that a key in it would change what a request is.
func ownHeader(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"mcp-", "sec-", "proxy-", "content-", "transfer-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"accept", "accept-encoding", "connection", "cookie", "date", "expect", "host", "keep-alive", "last-event-id", "origin",
		"te", "trailer", "upgrade", "user-agent", "via",
	}, name)
}

func (p *authProblems) http() {
	switch p.Scheme {
	case SchemeBasic:
		if p.Secret != "" && p.Username == "" {
			p.add(httpField+".username", "missing; the password is one user's. Write it, or leave out both and the person is asked")
		}
		if p.Secret == "" && p.Username != "" {
			p.add(httpField+".password", "missing; give it as a reference, or leave out username too and the person is asked")
		}
		if _, err := p.Username.References(); err != nil {
			p.add(httpField+".username", "%v", err)
		} else if plain := secretPattern().ReplaceAllString(string(p.Username), ""); strings.ContainsAny(plain, ":\r\n\x00") || strings.Contains(plain, "${") {
			p.add(httpField+".username", "contains a colon, a line break or ${ that begins no reference (RFC 7617 section 2)")
		}
	case SchemeBearer:
		if p.Username != "" {
			p.add(httpField+".username", "a bearer token has none; remove it or write scheme basic")
		}
	default:
		p.add(schemeField+".scheme", "%q is not one of basic, bearer", p.Scheme)
	}
	if p.In != "" || p.Name != "" {
		p.add(schemeField+".in", "http credentials go into the header Authorization; remove in and name or write type apiKey")
	}
}

// noLogin refuses what only logins have.
func (p *authProblems) noLogin() {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"auth_credential.oauth2", p.ClientID != "" || p.ClientSecret != "" || p.ClientAuth != "" || p.PrivateKey != "" || p.PrivateKeyID != ""},
		{schemeField + ".flows", p.AuthorizationURL != "" || p.TokenURL != "" || len(p.AuthorizationParams) > 0},
		{"scopes", len(p.Scopes) > 0 || len(p.MaxScopes) > 0},
		{"tarry.grant", p.Grant != ""},
		{"auth_credential.service_account", p.ServiceAccount != "" || p.Audience != ""},
		{"tarry.assertion_audience", p.AssertionAudience != ""},
		{"tarry.use_id_token", p.UseIDToken},
		{"tarry.omit_resource", p.OmitResource},
		{"tarry.allow_missing_pkce", p.AllowMissingPKCE},
		{"tarry.legacy_authorization", p.LegacyAuthorization},
	} {
		if f.given {
			p.add(f.field, "belongs to a login at a provider; %s has none, remove it", p.Type)
		}
	}
}

// keyless refuses what only typed credentials have.
func (p *authProblems) keyless() {
	if p.In != "" || p.Name != "" || p.Scheme != "" || p.Secret != "" || p.Username != "" {
		p.add(schemeField+".type", "%q is a login at a provider; a key that a person types is apiKey or http", p.Type)
	}
}
