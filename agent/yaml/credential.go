package yaml

import (
	"slices"
	"strings"

	"tarry/agent"
)

// credential reads auth_credential. Its values may be secrets that stand in the wrong place, so no error repeats one.
func credential(v value, field string, a *agent.Auth) {
	v.hide()
	o := v.object(snake)
	if o == nil {
		return
	}
	o.only([]string{"auth_type", "oauth2", "api_key", "http", "service_account"}, map[string]string{"resource_ref": ""})
	if t, ok := o.get("auth_type"); ok {
		switch kind := t.text(); kind {
		case "oauth2", "openIdConnect":
		case "apiKey", "http":
			if string(a.Type) != kind {
				t.fail("%s needs an auth_scheme of type %s, which says where it is sent", kind, kind)
				return
			}
		case "serviceAccount":
			serviceAccount(o, field, a)
			return
		default:
			if !slices.Contains(v.doc.bad, t.path) {
				t.fail("not an auth_type; write %s", strings.Join(schemes(), ", "))
			}
			return
		}
	}
	typed(o, field, a)
	if c, ok := o.get("oauth2"); ok {
		c.place(field + ".auth_credential.oauth2")
		client(c, field, a)
	}
}

func client(v value, field string, a *agent.Auth) {
	o := v.object(snake)
	if o == nil {
		return
	}
	const issued = "comes from a login and is kept in the vault; remove it"
	fromLogin := []string{
		"auth_uri", "state", "auth_response_uri", "auth_code", "access_token", "refresh_token", "id_token", "expires_at",
		"expires_in", "code_verifier", "nonce",
	}
	known := []string{"client_id", "client_secret", "redirect_uri", "token_endpoint_auth_method", "prompt", "code_challenge_method", "private_key", "private_key_id"}
	o.only(append(known, fromLogin...), map[string]string{"audience": "name the resource in tarry"})
	for _, key := range fromLogin {
		if f, ok := o.get(key); ok {
			f.fail("%s", issued)
		}
	}
	a.ClientID = o.text("client_id")
	placeAs(o, "client_id", field+".auth_credential.oauth2.client_id")
	placeAs(o, "client_secret", field+".auth_credential.oauth2.client_secret")
	placeAs(o, "token_endpoint_auth_method", field+".auth_credential.oauth2.token_endpoint_auth_method")
	if s, ok := o.get("client_secret"); ok {
		a.ClientSecret = agent.SecretRef(s.secret())
		if _, err := a.ClientSecret.Parse(); err != nil && !slices.Contains(v.doc.bad, s.path) {
			s.fail("%v", err)
		}
	}
	if m, ok := o.get("token_endpoint_auth_method"); ok {
		a.ClientAuth = m.text()
		if a.ClientAuth == "client_secret_jwt" {
			m.fail("ADK knows %s, Tarry does not; use private_key_jwt, client_secret_basic, client_secret_post or none", a.ClientAuth)
		}
	}
	privateKey(o, field, a)
	if c, ok := o.get("code_challenge_method"); ok && c.text() != "S256" && !slices.Contains(v.doc.bad, c.path) {
		c.fail("must be S256, which is always used; remove it")
	}
	if p := o.text("prompt"); p != "" && a.AuthorizationParams != nil {
		a.AuthorizationParams["prompt"] = p
	}
}

// privateKey reads what private_key_jwt signs with. ADK knows the method and leaves the key to the application.
func privateKey(o *object, field string, a *agent.Auth) {
	placeAs(o, "private_key", field+".auth_credential.oauth2.private_key")
	placeAs(o, "private_key_id", field+".auth_credential.oauth2.private_key_id")
	a.PrivateKeyID = o.text("private_key_id")
	v, ok := o.get("private_key")
	if !ok {
		return
	}
	a.PrivateKey = agent.SecretRef(v.secret())
	if _, err := a.PrivateKey.Parse(); err != nil && !slices.Contains(o.doc.bad, v.path) {
		v.fail("%v", err)
	}
}
