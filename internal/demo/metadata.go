package demo

import (
	"encoding/json"
	"net/http"
	"slices"
)

// metadata is the document of RFC 8414 section 2 with the additions of RFC 9207.
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint,omitempty"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
	JWKSURI               string   `json:"jwks_uri,omitempty"`
	Scopes                []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	AssertionAlgs         []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported,omitempty"`
	IssSupported          bool     `json:"authorization_response_iss_parameter_supported,omitempty"`

	// For the OpenID Connect document only.
	EndSession   string   `json:"end_session_endpoint,omitempty"`
	SubjectTypes []string `json:"subject_types_supported,omitempty"`
	IDTokenAlgs  []string `json:"id_token_signing_alg_values_supported,omitempty"`
}

func (p *Provider) metadata(f Faults) metadata {
	auth := []string{AuthNone, AuthBasic, AuthPost, AuthPrivateKey}
	m := metadata{
		Issuer:                p.Issuer(),
		AuthorizationEndpoint: p.AuthorizeURL(),
		TokenEndpoint:         p.TokenURL(),
		RevocationEndpoint:    p.RevocationURL(),
		DeviceEndpoint:        p.DeviceURL(),
		Scopes:                p.scopes(f),
		ResponseTypes:         []string{"code"},
		ResponseModes:         []string{"query"},
		GrantTypes:            []string{grantCode, grantRefresh, grantDevice},
		AuthMethods:           auth,
		AssertionAlgs:         []string{"RS256", "PS256", "ES256", "EdDSA"},
		RevocationAuthMethods: auth,
		IssSupported:          !f.NoIssMetadata,
	}
	if !f.NoRegistration {
		m.RegistrationEndpoint = p.RegistrationURL()
	}
	if !f.NoPKCEMetadata {
		m.ChallengeMethods = []string{"S256"}
	}
	if f.MetadataIssuer != "" {
		m.Issuer = f.MetadataIssuer
	}
	return m
}

// scopes are those that may be asked for.
func (p *Provider) scopes(f Faults) []string {
	if f.RequireOfflineAccess {
		return append(p.cfg.Scopes[:len(p.cfg.Scopes):len(p.cfg.Scopes)], ScopeOffline)
	}
	return p.cfg.Scopes
}

func (p *Provider) oauthMetadata(w http.ResponseWriter, r *http.Request) {
	f := p.Faults()
	if f.NoMetadata {
		http.NotFound(w, r)
		return
	}
	writeJSON(w, http.StatusOK, p.metadata(f))
}

func (p *Provider) oidcMetadata(w http.ResponseWriter, r *http.Request) {
	f := p.Faults()
	if !f.OIDCMetadata {
		http.NotFound(w, r)
		return
	}
	m := p.metadata(f)
	m.JWKSURI = p.endpoint("/jwks")
	m.Scopes = append(slices.Clone(m.Scopes), identityScopes()...)
	m.EndSession = p.endpoint("/logout")
	m.SubjectTypes = []string{"public"}
	m.IDTokenAlgs = []string{"RS256"}
	writeJSON(w, http.StatusOK, m)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone; nobody is left to tell
}
