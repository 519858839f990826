package agent

import (
	"fmt"
	"strings"
)

// Problems lists what is wrong with an authorization definition; Agent is left empty.
func (a *Auth) Problems() []FieldError {
	var out []FieldError
	add := func(field, format string, args ...any) {
		out = append(out, FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	switch a.Type {
	case AuthOAuth2:
		if a.AuthorizationURL == "" {
			add("auth_scheme.flows.authorizationCode.authorizationUrl", "missing")
		}
		if a.TokenURL == "" {
			add("auth_scheme.flows.authorizationCode.tokenUrl", "missing")
		}
		if a.AuthorizationURL != "" && !webURL(a.AuthorizationURL) {
			add("auth_scheme.flows.authorizationCode.authorizationUrl", "not an http(s) URL without user name and password")
		}
		if a.TokenURL != "" && !webURL(a.TokenURL) {
			add("auth_scheme.flows.authorizationCode.tokenUrl", "not an http(s) URL without user name and password")
		}
	case AuthOpenIDConnect:
		if a.Issuer == "" && (a.AuthorizationURL == "" || a.TokenURL == "") {
			add("auth_scheme", "give authorization_endpoint and token_endpoint, or an issuer to discover them from")
		}
		if a.AuthorizationURL != "" && !webURL(a.AuthorizationURL) {
			add("auth_scheme.authorization_endpoint", "not an http(s) URL without user name and password")
		}
		if a.TokenURL != "" && !webURL(a.TokenURL) {
			add("auth_scheme.token_endpoint", "not an http(s) URL without user name and password")
		}
	case AuthMCP:
		if a.AuthorizationURL != "" || a.TokenURL != "" {
			add("auth_scheme", "an MCP server's endpoints are discovered; leave them out or use type oauth2")
		}
	default:
		add("auth_scheme.type", "%q is not one of oauth2, openIdConnect", a.Type)
	}
	if _, err := a.ClientSecret.Parse(); err == nil && a.Type == AuthMCP && a.ClientID != "" && a.Issuer == "" {
		add("tarry.issuer", "missing; a client with a secret is bound to one issuer, or any server could be sent the secret")
	}
	if a.Type != AuthMCP && a.ClientID == "" {
		add("auth_credential.oauth2.client_id", "missing; register a client at the provider")
	}
	if a.ClientSecret != "" && a.ClientID == "" && a.Type == AuthMCP {
		add("auth_credential.oauth2.client_id", "missing; a client secret belongs to a registered client")
	}
	if a.ClientSecret != "" {
		if _, err := a.ClientSecret.Parse(); err != nil {
			add("auth_credential.oauth2.client_secret", "%v", err)
		}
	}
	switch a.ClientAuth {
	case "", "none":
	case "client_secret_basic", "client_secret_post":
		if a.ClientSecret == "" {
			add("auth_credential.oauth2.client_secret", "missing; token_endpoint_auth_method %s sends it", a.ClientAuth)
		}
	default:
		add("auth_credential.oauth2.token_endpoint_auth_method", "%q is not one of client_secret_basic, client_secret_post, none", a.ClientAuth)
	}
	if extra := beyond(a.Scopes, a.MaxScopes); len(a.MaxScopes) > 0 && len(extra) > 0 {
		add("scopes", "%s not in max_scopes", strings.Join(extra, " "))
	}
	return out
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
