package adk

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checker compares what a client sends back for a login request with what was issued. Clients re-encode the config, in
// either spelling and with nulls and defaults; what they may not do is add a value or change one.
type checker struct {
	issued   map[string]any
	returned func(uri string) string
}

const maxWraps = 4 // how often an answer may be wrapped in {"result": …} or a JSON string

// response says what is wrong with v, or "".
func (c *checker) response(v any, depth int) string {
	if depth > maxWraps {
		return "the response is wrapped too often"
	}
	switch v := v.(type) {
	case string:
		if inner, ok := wrapped(v); ok {
			return c.response(inner, depth+1)
		}
		for _, word := range strings.Fields(v) { // free text, unless somebody pastes the address that a login ended at
			if strings.Contains(word, "://") {
				if problem := c.returned(word); problem != "" {
					return problem
				}
			}
		}
		return ""
	case map[string]any:
		return c.object(v, depth)
	case []any:
		return "the response is a list, not the authConfig that was asked with"
	default:
		return ""
	}
}

// object takes an AuthConfig, one inside {"authConfig": …}, a bare AuthCredential, or {"result": "text"}.
func (c *checker) object(m map[string]any, depth int) string {
	switch {
	case names(m, "authScheme", "exchangedAuthCredential", "rawAuthCredential", "credentialKey"):
		return c.same("", m, c.issued)
	case names(m, "authType", "oauth2", "http", "apiKey", "serviceAccount"):
		return c.same("exchangedAuthCredential", m, c.issued["exchangedAuthCredential"])
	}
	for _, key := range slices.Sorted(maps.Keys(m)) { // of several problems always the same one is told
		value := m[key]
		var problem string
		if name := camel(key); fields(name) {
			problem = c.same(name, value, c.anywhere(name))
		} else {
			problem = c.response(value, depth+1)
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

func names(m map[string]any, some ...string) bool {
	for key := range m {
		if slices.Contains(some, camel(key)) {
			return true
		}
	}
	return false
}

// fields are those of ADK's OAuth2Auth, HttpCredentials and their like, and common spellings: outside of their objects they
// are still no free text.
func fields(name string) bool {
	switch name {
	case "clientId", "clientSecret", "authUri", "state", "redirectUri", "authResponseUri", "authCode", "accessToken",
		"refreshToken", "idToken", "codeVerifier", "nonce", "tokenUrl", "authorizationUrl", "authorizationEndpoint", "tokenEndpoint",
		"token", "secret", "password", "code", "credentials", "authorization":
		return true
	}
	return false
}

// anywhere finds the issued value of a field that came outside of its object, such as a bare oauth2 object's.
func (c *checker) anywhere(name string) any {
	exchanged, _ := c.issued["exchangedAuthCredential"].(map[string]any)
	oauth, _ := exchanged["oauth2"].(map[string]any)
	for _, from := range []map[string]any{c.issued, exchanged, oauth} {
		if v, ok := from[name]; ok {
			return v
		}
	}
	return nil
}

// same says where got differs from what was issued. The values are not quoted: they may be secrets.
func (c *checker) same(path string, got, issued any) string {
	name := path[strings.LastIndex(path, ".")+1:]
	switch {
	case name == "authResponseUri":
		uri, ok := got.(string)
		if got != nil && !ok {
			return path + " is not a string"
		}
		return c.returned(uri)
	case name == "redirectUri": // where the client wants to be sent back to; the connect page decides
		return ""
	case empty(got):
		return ""
	}
	switch got := got.(type) {
	case map[string]any:
		from, _ := issued.(map[string]any)
		for _, sent := range slices.Sorted(maps.Keys(got)) {
			key := camel(sent)
			if problem := c.same(strings.TrimPrefix(path+"."+key, "."), got[sent], from[key]); problem != "" {
				return problem
			}
		}
		return ""
	default:
		if reflect.DeepEqual(normal(got), issued) || (issued == nil && defaults(name, got)) {
			return ""
		}
	}
	if issued == nil {
		return fmt.Sprintf("%s is not taken from clients, and it was dropped", brief(path))
	}
	return fmt.Sprintf("%s is not what was asked with", brief(path))
}

// defaults are values that ADK's client libraries add when they encode a config again.
func defaults(name string, v any) bool {
	switch name {
	case "tokenEndpointAuthMethod":
		return v == "client_secret_basic"
	case "codeChallengeMethod":
		return v == "S256"
	}
	return false
}

// empty: null, "", 0, false, {}, [] and objects of such, which encoders add for what is absent.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, value := range v {
			if !empty(value) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// normal spells all keys of what was issued in camelCase, at every depth.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if name := camel(key); name == key || v[name] == nil {
				out[name] = normal(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = normal(value)
		}
		return out
	default:
		return v
	}
}
