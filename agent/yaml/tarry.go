package yaml

import (
	"slices"

	"tarry/agent"
)

// credentialKeys are the keys of a toolset's tarry block that describe its credential.
func credentialKeys() []string {
	return []string{
		"max_scopes", "credential_domain", "resource", "issuer", "grant", "omit_resource", "allow_missing_pkce", "legacy_authorization",
		"assertion_audience", "use_id_token",
	}
}

// manners reads the keys of the tarry block that describe the toolset itself.
func manners(o *object, field string, m *agent.MCPToolset) {
	v, ok := o.get("tarry")
	if !ok {
		return
	}
	block := v.object(nil)
	if block == nil {
		return
	}
	block.only(append(credentialKeys(), "lazy", "accept_defaults", "confirm"), nil)
	m.Lazy, m.AcceptDefaults = block.flag("lazy"), block.flag("accept_defaults")
	m.Confirm = block.texts("confirm")
	if v, ok := block.get("confirm"); ok {
		v.place(field + ".confirm")
	}
}

// limits reads the keys of the tarry block that describe the credential; false if there are none.
func limits(o *object, field string, a *agent.Auth) bool {
	v, ok := o.get("tarry")
	if !ok || v.pairs() == nil {
		return false // manners has complained about what is no mapping
	}
	block := v.object(nil)
	if !slices.ContainsFunc(credentialKeys(), block.has) {
		return false
	}
	a.MaxScopes, a.Domain, a.Resource = block.texts("max_scopes"), block.text("credential_domain"), block.text("resource")
	if s, ok := block.get("max_scopes"); ok {
		s.place(field + ".scopes")
	}
	if issuer := block.text("issuer"); issuer != "" {
		a.Issuer = issuer
	}
	if v, ok := block.get("grant"); ok {
		v.place(field + ".tarry.grant")
		grant(v, a)
	}
	a.OmitResource, a.AllowMissingPKCE = block.flag("omit_resource"), block.flag("allow_missing_pkce")
	a.LegacyAuthorization = block.flag("legacy_authorization")
	if a.AssertionAudience = block.text("assertion_audience"); a.AssertionAudience == "issuer" {
		a.AssertionAudience = ""
	}
	a.UseIDToken = block.flag("use_id_token")
	for _, key := range []string{"resource", "allow_missing_pkce", "legacy_authorization", "assertion_audience", "use_id_token"} {
		if v, ok := block.get(key); ok {
			v.place(field + ".tarry." + key)
		}
	}
	return true
}

// grant reads how the token is got; what auth_scheme says already may be said again.
func grant(v value, a *agent.Auth) {
	kind := v.text()
	if kind == "authorization_code" {
		kind = ""
	}
	if a.Grant != "" && kind != a.Grant {
		v.fail("auth_scheme has a flow of another kind; remove one")
		return
	}
	a.Grant = kind
}
