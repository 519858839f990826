package agent

import (
	"fmt"
	"strings"
)

// Problems lists what is wrong with an authorization definition; Agent is left empty.
func (a *Auth) Problems() []FieldError {
	p := &authProblems{Auth: a}
	if a.Typed() {
		p.key()
		return p.found
	}
	p.keyless()
	if a.Type == AuthServiceAccount {
		p.serviceAccount()
		return p.found
	}
	switch a.Type {
	case AuthOAuth2:
		p.oauth2()
	case AuthOpenIDConnect:
		p.openID()
	case AuthMCP:
		if a.AuthorizationURL != "" || a.TokenURL != "" {
			p.add("auth_scheme", "an MCP server's endpoints are discovered; leave them out or use type oauth2")
		}
	default:
		p.add("auth_scheme.type", "%q is not one of oauth2, openIdConnect, apiKey, http", a.Type)
	}
	p.client()
	p.method()
	p.privateKey()
	p.grant()
	p.idToken()
	p.relaxed()
	if extra := beyond(a.Scopes, a.MaxScopes); len(a.MaxScopes) > 0 && len(extra) > 0 {
		p.add("scopes", "%s not in max_scopes", strings.Join(extra, " "))
	}
	return p.found
}

type authProblems struct {
	*Auth

	found []FieldError
}

func (p *authProblems) add(field, format string, args ...any) {
	p.found = append(p.found, FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

const noWebURL = "not an http(s) URL without user name and password"

func (p *authProblems) oauth2() {
	flow := "auth_scheme.flows.authorizationCode"
	switch p.Grant {
	case GrantClientCredentials:
		flow = "auth_scheme.flows.clientCredentials"
		if p.AuthorizationURL != "" {
			p.add(flow+".authorizationUrl", "client credentials ask nobody; remove it")
		}
	case GrantDeviceCode:
		flow = "auth_scheme.flows.deviceCode"
		p.endpoint(flow+".deviceAuthorizationUrl", p.DeviceURL)
	default:
		p.endpoint(flow+".authorizationUrl", p.AuthorizationURL)
	}
	p.endpoint(flow+".tokenUrl", p.TokenURL)
}

func (p *authProblems) endpoint(field, url string) {
	switch {
	case url == "":
		p.add(field, "missing")
	case !webURL(url):
		p.add(field, noWebURL)
	}
}

func (p *authProblems) openID() {
	if p.Issuer == "" && (p.AuthorizationURL == "" || p.TokenURL == "") {
		p.add("auth_scheme", "give authorization_endpoint and token_endpoint, or an issuer to discover them from")
	}
	if p.AuthorizationURL != "" && !webURL(p.AuthorizationURL) {
		p.add("auth_scheme.authorization_endpoint", noWebURL)
	}
	if p.TokenURL != "" && !webURL(p.TokenURL) {
		p.add("auth_scheme.token_endpoint", noWebURL)
	}
}

func (p *authProblems) client() {
	if _, err := p.ClientSecret.Parse(); err == nil && p.Type == AuthMCP && p.ClientID != "" && p.Issuer == "" {
		p.add("tarry.issuer", "missing; a client with a secret is bound to one issuer, or any server could be sent the secret")
	}
	if p.Type != AuthMCP && p.ClientID == "" {
		p.add("auth_credential.oauth2.client_id", "missing; register a client at the provider")
	}
	if p.ClientSecret != "" && p.ClientID == "" && p.Type == AuthMCP {
		p.add("auth_credential.oauth2.client_id", "missing; a client secret belongs to a registered client")
	}
	if p.ClientSecret != "" {
		if _, err := p.ClientSecret.Parse(); err != nil {
			p.add("auth_credential.oauth2.client_secret", "%v", err)
		}
	}
}

func (p *authProblems) method() {
	switch p.ClientAuth {
	case "", "none", ClientAuthPrivateKey:
	case "client_secret_basic", "client_secret_post":
		if p.ClientSecret == "" {
			p.add("auth_credential.oauth2.client_secret", "missing; token_endpoint_auth_method %s sends it", p.ClientAuth)
		}
	default:
		p.add("auth_credential.oauth2.token_endpoint_auth_method", "%q is not one of client_secret_basic, client_secret_post, private_key_jwt, none", p.ClientAuth)
	}
}

// grant checks what a credential without a person needs: whoever has the client's secret is the app.
func (p *authProblems) grant() {
	switch p.Grant {
	case "":
		return
	case GrantDeviceCode:
		if p.ClientID == "" && p.Type == AuthMCP {
			p.add("auth_credential.oauth2.client_id", "missing; a login with a code is that of a registered client")
		}
		return
	case GrantClientCredentials:
	default:
		p.add("tarry.grant", "%q is not one of authorization_code, client_credentials, device_code", p.Grant)
		return
	}
	if p.Type == AuthOpenIDConnect {
		p.add("tarry.grant", "client credentials know no person, and openIdConnect is about one; use type oauth2 with flows.clientCredentials")
	}
	if p.ClientID == "" && p.Type == AuthMCP && p.ClientSecret == "" && p.PrivateKey == "" {
		p.add("auth_credential.oauth2.client_id", "missing; client credentials are those of a registered client")
	}
	switch {
	case p.ClientAuth == "none":
		p.add("auth_credential.oauth2.token_endpoint_auth_method", "none proves nothing; client credentials need client_secret_basic, client_secret_post or private_key_jwt")
	case p.ClientSecret == "" && p.ClientAuth == "" && p.PrivateKey == "":
		p.add("auth_credential.oauth2.client_secret", "missing; client credentials are proven by it")
	}
}

// relaxed checks that an opt-out stands where there is something to opt out of.
func (p *authProblems) relaxed() {
	if p.Type == AuthMCP {
		if p.LegacyAuthorization && p.Resource != "" {
			p.add("tarry.resource", "a server of the time before resource metadata has no resource of another name; remove it or legacy_authorization")
		}
		return
	}
	if p.AllowMissingPKCE {
		p.add("tarry.allow_missing_pkce", "only the provider that an MCP server names is checked for PKCE; remove it")
	}
	if p.LegacyAuthorization {
		p.add("tarry.legacy_authorization", "the endpoints do not come from the MCP server; remove it or auth_scheme")
	}
}

func beyond(scopes, limit []string) []string {
	allowed := map[string]bool{}
	for _, s := range limit {
		allowed[s] = true
	}
	var out []string
	for _, s := range scopes {
		if !allowed[s] {
			out = append(out, s)
		}
	}
	return out
}
