package demo

import (
	"slices"
	"time"
)

// Faults are the shapes and failures a provider can take on. The zero value is a provider that follows MCP
// authorization to the letter. Change them at run time with [Provider.SetFaults].
type Faults struct {
	// AccessTokenTTL of tokens issued from now on; 0 means one hour.
	AccessTokenTTL time.Duration
	// NoExpiresIn leaves expires_in out of token answers; the token still expires.
	NoExpiresIn bool
	// NoRefreshToken issues none.
	NoRefreshToken bool
	// RequireOfflineAccess lists offline_access and issues refresh tokens only where it was granted.
	RequireOfflineAccess bool
	// NoRotation answers a refresh without a refresh token; the old one stays valid.
	NoRotation bool
	// ReplaceScopes, if not nil, is granted instead of what was asked for.
	ReplaceScopes []string

	// ErrorWith200 gives error answers of the token endpoint the status 200.
	ErrorWith200 bool
	// FormEncoded makes token answers application/x-www-form-urlencoded, whatever the client accepts.
	FormEncoded bool
	// TokenError answers every token request with this error code; nothing is consumed.
	TokenError string
	// RefreshError answers every refresh with this error code, such as invalid_grant; nothing is consumed.
	RefreshError string
	// TokenFailures is how many of the next token requests are answered 503; nothing is consumed. It counts down.
	TokenFailures int
	// EchoErrors makes error answers of the token endpoint repeat all that the request held, in their texts and a header;
	// EchoCodes repeats the code or refresh token as the error code itself.
	EchoErrors, EchoCodes bool
	// TokenDelay holds back token answers after the code or refresh token was consumed.
	TokenDelay time.Duration

	// NoMetadata removes the RFC 8414 document, OIDCMetadata adds the OpenID Connect one.
	NoMetadata, OIDCMetadata bool
	// NoRegistration removes the registration endpoint and its metadata.
	NoRegistration bool
	// NoPKCEMetadata leaves code_challenge_methods_supported out.
	NoPKCEMetadata bool
	// MetadataIssuer replaces the issuer in the metadata.
	MetadataIssuer string

	// DeviceInterval is how often a device code may be asked about; 0 means every second.
	DeviceInterval time.Duration
	// NoIDToken issues none, NoJWKS answers 503 instead of the keys, ForgedIDToken signs with another key.
	NoIDToken, NoJWKS, ForgedIDToken bool
	// IDTokenClaims replace claims of ID tokens; nil values remove them.
	IDTokenClaims map[string]any

	// Iss replaces the iss parameter of authorization responses (RFC 9207).
	Iss string
	// NoIss leaves the parameter out; NoIssMetadata does not advertise it. They are independent.
	NoIss, NoIssMetadata bool

	// PKCEOptional and ResourceOptional accept requests without; what is sent is still checked.
	PKCEOptional, ResourceOptional bool
	// RejectResource answers invalid_target at the authorization endpoint wherever a resource is sent.
	RejectResource bool

	// AutoApprove names a user who is signed in and approves without any page.
	AutoApprove string
}

// GitHubShape is a provider of the kind that was there before discovery: no metadata, no registration, form-encoded
// answers, errors with status 200, tokens without expiry and refresh, no iss, and PKCE only if the client sends it.
func GitHubShape() Faults {
	return Faults{
		NoMetadata:       true,
		NoRegistration:   true,
		FormEncoded:      true,
		ErrorWith200:     true,
		NoExpiresIn:      true,
		NoRefreshToken:   true,
		NoPKCEMetadata:   true,
		NoIss:            true,
		NoIssMetadata:    true,
		PKCEOptional:     true,
		ResourceOptional: true,
	}
}

// Faults returns the current faults.
func (p *Provider) Faults() Faults {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.faults
	f.ReplaceScopes = slices.Clone(f.ReplaceScopes)
	return f
}

// SetFaults changes the faults; requests that arrive afterwards see the change. change must not call the provider.
func (p *Provider) SetFaults(change func(*Faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
}
