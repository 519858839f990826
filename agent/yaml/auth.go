package yaml

import (
	"slices"
	"strings"

	"tarry/agent"
)

// wellKnown is what follows the issuer in the URL of an OpenID configuration (OpenID Connect Discovery 1.0, section 4).
const wellKnown = "/.well-known/openid-configuration"

// auth reads auth_scheme, auth_credential, credential_key and tarry of a toolset's args; nil if none says anything.
func (l *loader) auth(o *object, field string) *agent.Auth {
	before := len(o.doc.problems.errs)
	a := &agent.Auth{Type: agent.AuthMCP, Key: o.text("credential_key")}
	used := a.Key != ""
	if v, ok := o.get("auth_scheme"); ok {
		v.place(field + ".auth_scheme")
		used = true
		scheme(v, field, a)
	} else {
		o.missing("auth_scheme").place(field + ".auth_scheme")
	}
	if v, ok := o.get("auth_credential"); ok {
		v.place(field + ".auth_credential")
		credential(v, field, a)
		used = used || a.ClientID != "" || a.ClientSecret != "" || a.PrivateKey != "" || a.Type == agent.AuthServiceAccount || a.Secret != "" || a.Username != ""
	} else {
		o.missing("auth_credential").place(field + ".auth_credential")
	}
	if limits(o, field, a) {
		used = true
	}
	o.missing("tarry.issuer").place(field + ".tarry.issuer")
	if len(o.doc.problems.errs) > before {
		for _, part := range []string{".auth_scheme", ".auth_credential", ".scopes"} {
			o.doc.bad = append(o.doc.bad, field+part)
		}
	}
	if !used {
		return nil
	}
	return a
}

// schemes are the types of auth_scheme.
func schemes() []string { return []string{"oauth2", "openIdConnect", "apiKey", "http"} }

func scheme(v value, field string, a *agent.Auth) {
	o := v.object(snake)
	if o == nil {
		return
	}
	t, ok := o.get("type")
	if !ok {
		v.fail("has no type; write %s", strings.Join(schemes(), ", "))
		return
	}
	t.place(field + ".auth_scheme.type")
	switch kind := t.text(); kind {
	case "oauth2":
		a.Type = agent.AuthOAuth2
		oauth2Scheme(o, field, a)
	case "openIdConnect":
		a.Type = agent.AuthOpenIDConnect
		openIDScheme(o, field, a)
	case "apiKey":
		a.Type = agent.AuthAPIKey
		apiKeyScheme(o, field, a)
	case "http":
		a.Type = agent.AuthHTTP
		httpScheme(o, field, a)
	case "serviceAccount", "gcpAuthProviderScheme":
		t.fail("ADK knows %s, Tarry does not yet; there are %s", kind, strings.Join(schemes(), ", "))
	default:
		if !slices.Contains(v.doc.bad, t.path) {
			t.fail("there is no scheme %s; %s", t.shown(), instead(kind, schemes()))
		}
	}
}

func oauth2Scheme(o *object, field string, a *agent.Auth) {
	o.only([]string{"type", "description", "flows", "issuer_url"}, nil)
	a.Issuer = o.text("issuer_url")
	v, ok := o.get("flows")
	if !ok {
		o.fail("has no flows; write flows with authorizationCode")
		return
	}
	flows := v.object(snake)
	if flows == nil {
		return
	}
	flows.only([]string{"authorization_code", "client_credentials", "device_code"}, map[string]string{
		"implicit": "use authorizationCode", "password": "use authorizationCode",
	})
	f, ok := flows.get("authorization_code")
	m, machine := flows.get("client_credentials")
	d, device := flows.get("device_code")
	switch {
	case device && len(flows.order) > 1:
		flows.fail("has two flows; keep one of them")
	case device:
		deviceFlow(d, field, a)
	case ok && machine:
		flows.fail("has two flows; keep authorizationCode, which asks a person, or clientCredentials, which does not")
	case ok:
		codeFlow(f, field, a)
	case machine:
		clientFlow(m, field, a)
	case len(flows.order) == 0:
		flows.fail("has no flow; write authorizationCode with authorizationUrl and tokenUrl")
	}
}

func codeFlow(v value, field string, a *agent.Auth) {
	code := v.object(snake)
	if code == nil {
		return
	}
	code.only([]string{"authorization_url", "token_url", "refresh_url", "scopes"}, nil)
	a.AuthorizationURL, a.TokenURL = code.text("authorization_url"), code.text("token_url")
	placeAs(code, "authorization_url", field+".auth_scheme.flows.authorizationCode.authorizationUrl")
	placeAs(code, "token_url", field+".auth_scheme.flows.authorizationCode.tokenUrl")
	if r, ok := code.get("refresh_url"); ok && r.text() != a.TokenURL {
		r.fail("ADK knows a refreshUrl of its own, Tarry does not yet; remove it, tokenUrl is used")
	}
	a.Scopes = scopes(code, field)
	a.AuthorizationParams = authorizationParams()
}

// deviceFlow is a login on another device (RFC 8628); ADK has no such flow, OpenAPI 3.2 has, with these keys.
func deviceFlow(v value, field string, a *agent.Auth) {
	flow := v.object(snake)
	if flow == nil {
		return
	}
	flow.only([]string{"device_authorization_url", "token_url", "scopes"}, nil)
	a.Grant, a.DeviceURL, a.TokenURL = agent.GrantDeviceCode, flow.text("device_authorization_url"), flow.text("token_url")
	placeAs(flow, "device_authorization_url", field+".auth_scheme.flows.deviceCode.deviceAuthorizationUrl")
	placeAs(flow, "token_url", field+".auth_scheme.flows.deviceCode.tokenUrl")
	a.Scopes = scopes(flow, field)
}

// clientFlow is a credential of the app itself (RFC 6749 section 4.4).
func clientFlow(v value, field string, a *agent.Auth) {
	flow := v.object(snake)
	if flow == nil {
		return
	}
	flow.only([]string{"token_url", "refresh_url", "scopes"}, map[string]string{"authorization_url": "nobody is asked"})
	a.Grant, a.TokenURL = agent.GrantClientCredentials, flow.text("token_url")
	placeAs(flow, "token_url", field+".auth_scheme.flows.clientCredentials.tokenUrl")
	if r, ok := flow.get("refresh_url"); ok && r.text() != a.TokenURL {
		r.fail("client credentials have no refresh; remove it, tokenUrl is used")
	}
	a.Scopes = scopes(flow, field)
}

func openIDScheme(o *object, field string, a *agent.Auth) {
	o.only([]string{
		"type", "description", "authorization_endpoint", "token_endpoint", "scopes", "issuer_url", "open_id_connect_url",
		// What follows is read by ADK from the provider's configuration and needed by nothing here.
		"userinfo_endpoint", "revocation_endpoint", "token_endpoint_auth_methods_supported", "grant_types_supported",
	}, nil)
	a.AuthorizationURL, a.TokenURL = o.text("authorization_endpoint"), o.text("token_endpoint")
	placeAs(o, "authorization_endpoint", field+".auth_scheme.authorization_endpoint")
	placeAs(o, "token_endpoint", field+".auth_scheme.token_endpoint")
	a.Issuer = o.text("issuer_url")
	if v, ok := o.get("open_id_connect_url"); ok {
		issuer, known := strings.CutSuffix(v.text(), wellKnown)
		switch {
		case !known:
			v.fail("%s does not end in %s; write issuerUrl instead", v.shown(), wellKnown)
		case a.Issuer != "" && strings.TrimSuffix(a.Issuer, "/") != issuer:
			v.fail("%s belongs to another issuer than issuerUrl; keep one of them", v.shown())
		case a.Issuer == "":
			a.Issuer = issuer
		}
	}
	a.Scopes = scopes(o, field)
	a.AuthorizationParams = authorizationParams()
}

// authorizationParams are what ADK adds to every authorization URL: Google gives no refresh token without them.
func authorizationParams() map[string]string {
	return map[string]string{"access_type": "offline", "prompt": "consent"}
}

func placeAs(o *object, key, field string) {
	if v, ok := o.get(key); ok {
		v.place(field)
		return
	}
	o.missing(field[strings.LastIndex(field, ".")+1:]).place(field)
}

// scopes reads a list, or a mapping of scopes to descriptions as OpenAPI has it.
func scopes(o *object, field string) []string {
	v, ok := o.get("scopes")
	if !ok {
		return nil
	}
	v.place(field + ".scopes")
	if v.isList() {
		return v.texts()
	}
	scopes := v.object(nil)
	if scopes == nil {
		return nil
	}
	return scopes.order
}
