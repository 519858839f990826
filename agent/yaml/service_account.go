package yaml

import (
	"slices"

	"tarry/agent"
)

// serviceAccount reads ADK's ServiceAccount. Its scheme, which ADK wants to be there, says only that a bearer token is sent.
func serviceAccount(o *object, field string, a *agent.Auth) {
	key := a.Key
	if a.Type != agent.AuthMCP && a.Type != agent.AuthHTTP || a.Type == agent.AuthHTTP && a.Scheme != "bearer" {
		o.fail("a service account sends a bearer token; leave auth_scheme out, or write type http with scheme bearer")
		return
	}
	*a = agent.Auth{Type: agent.AuthServiceAccount, Key: key}
	prefix := field + ".auth_credential.service_account."
	for _, name := range []string{"service_account_credential", "scopes", "audience"} {
		o.missing("service_account." + name).place(prefix + name)
	}
	v, ok := o.get("service_account")
	if !ok {
		return
	}
	s := v.object(snake)
	if s == nil {
		return
	}
	s.only([]string{"service_account_credential", "scopes", "use_id_token", "audience"}, map[string]string{
		"use_default_credential": "refer to a key with service_account_credential",
	})
	for _, name := range []string{"service_account_credential", "scopes", "audience"} {
		placeAs(s, name, prefix+name)
	}
	a.UseIDToken, a.Audience, a.Scopes = s.flag("use_id_token"), s.text("audience"), s.texts("scopes")
	ref, ok := s.get("service_account_credential")
	if !ok {
		return
	}
	a.ServiceAccount = agent.SecretRef(ref.secret())
	if _, err := a.ServiceAccount.Parse(); err != nil && !slices.Contains(o.doc.bad, ref.path) {
		ref.fail("%v", err)
	}
}
