package activities

import (
	"tarry/agent"
	"tarry/auth"
)

// keyConfig is ADK's AuthConfig for a credential that a person types in, without a value anywhere. ADK's clients open authUri
// whatever the scheme says; the page behind it is ours.
func (a *Activities) keyConfig(r auth.Request) (map[string]any, error) {
	k := *r.Need.Typed
	kind := r.Need.Type
	scheme := map[string]any{"type": kind}
	credential := func() map[string]any {
		out := map[string]any{"authType": kind}
		if k.Scheme != "" {
			out["http"] = map[string]any{"scheme": k.Scheme, "credentials": map[string]any{}}
		}
		return out
	}
	if kind == string(agent.AuthAPIKey) {
		scheme["in"], scheme["name"] = k.In, k.Name
	} else {
		scheme["scheme"] = k.Scheme
	}
	exchanged := credential()
	exchanged["oauth2"] = map[string]any{"authUri": a.Link(r), "state": r.Correlator}
	return plain(map[string]any{
		"authScheme": scheme, "rawAuthCredential": credential(), "exchangedAuthCredential": exchanged, "credentialKey": r.Need.Key,
	})
}
