package yaml

import (
	"slices"

	"tarry/agent"
)

// apiKeyScheme is OpenAPI's security scheme apiKey.
func apiKeyScheme(o *object, field string, a *agent.Auth) {
	o.only([]string{"type", "description", "in", "name"}, nil)
	placeAs(o, "in", field+".auth_scheme.in")
	placeAs(o, "name", field+".auth_scheme.name")
	a.In, a.Name = o.text("in"), o.text("name")
}

// httpScheme is OpenAPI's security scheme http, with the schemes that have one value to type in.
func httpScheme(o *object, field string, a *agent.Auth) {
	o.only([]string{"type", "description", "scheme", "bearer_format"}, nil)
	placeAs(o, "scheme", field+".auth_scheme.scheme")
	a.Scheme = o.text("scheme")
}

// typed reads what stands in the place of a key that a person would type in.
func typed(o *object, field string, a *agent.Auth) {
	if k, ok := o.get("api_key"); ok {
		if a.Type == agent.AuthAPIKey {
			reference(k, field+".auth_credential.api_key", a)
		} else {
			k.fail("needs an auth_scheme of type apiKey, which says where it is sent")
		}
	}
	h, ok := o.get("http")
	if !ok {
		return
	}
	if a.Type != agent.AuthHTTP {
		h.fail("needs an auth_scheme of type http")
		return
	}
	given := h.object(snake)
	if given == nil {
		return
	}
	given.only([]string{"scheme", "credentials"}, map[string]string{"additional_headers": "write headers into the connection params"})
	if s, ok := given.get("scheme"); ok && s.text() != a.Scheme && !slices.Contains(s.doc.bad, s.path) {
		s.fail("is not that of auth_scheme; remove it")
	}
	c, ok := given.get("credentials")
	if !ok {
		return
	}
	parts := c.object(snake)
	if parts == nil {
		return
	}
	httpCredentials(parts, field+".auth_credential.http.credentials", a)
}

func httpCredentials(parts *object, field string, a *agent.Auth) {
	parts.only([]string{"username", "password", "token"}, nil)
	if u, ok := parts.get("username"); ok {
		u.place(field + ".username")
		a.Username = agent.SecretTemplate(u.secret())
	} else {
		parts.missing("username").place(field + ".username")
	}
	wanted, other := "token", "password"
	if a.Scheme == agent.SchemeBasic {
		wanted, other = other, wanted
	}
	if s, ok := parts.get(wanted); ok {
		reference(s, field+"."+wanted, a)
	} else {
		parts.missing(wanted).place(field + "." + wanted)
	}
	if s, ok := parts.get(other); ok {
		s.fail("the scheme has no %s; remove it or change the scheme", other)
	}
}

// reference reads a secret, which must be a reference.
func reference(v value, field string, a *agent.Auth) {
	v.place(field)
	a.Secret = agent.SecretRef(v.secret())
	if _, err := a.Secret.Parse(); err != nil && !slices.Contains(v.doc.bad, v.path) {
		v.fail("%v", err)
	}
}
