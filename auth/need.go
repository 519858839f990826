package auth

import (
	"fmt"
	"reflect"
	"slices"

	"tarry/agent"
)

// Want is what a tool is about to do with a credential.
type Want struct {
	// Auth is the definition; the zero value means what the MCP server itself asks for.
	Auth agent.Auth
	// Server is the URL that the token will be sent to. Empty for Go function tools, which declare a resource instead.
	Server string
	// Tool and Toolset are shown to the person.
	Tool    string
	Toolset string
	// Refused is the version of a token that the server would not take; an older or equal one is no answer.
	Refused int64
}

// Challenge is a server's refusal: HTTP 401, or 403 with insufficient_scope.
type Challenge struct {
	Status int
	// WWWAuthenticate holds the header's values (RFC 9110 section 11.6.1).
	WWWAuthenticate []string
	// Used is the version of the token that was sent; 0 means none was.
	Used int64
}

// Need is a credential that is missing, with everything that was discovered about how to get it. It is pinned to the
// request that asks for it and holds no secret in the clear.
type Need struct {
	Slot   Slot     `json:"slot"`
	Scopes []string `json:"scopes,omitempty"`
	// Wanted is what this need was before Scopes was widened by what others ask for at the same time; nil if it was not.
	Wanted []string `json:"wanted,omitempty"`
	// Limit is the definition's max_scopes; empty means none.
	Limit    []string `json:"limit,omitempty"`
	Key      string   `json:"key"`
	Type     string   `json:"type"`
	Tool     string   `json:"tool,omitempty"`
	Toolset  string   `json:"toolset,omitempty"`
	Server   string   `json:"server,omitempty"`
	Refused  int64    `json:"refused,omitempty"`
	Provider Provider `json:"provider"`
	Client   Client   `json:"client"`
	// Input and Answer are encrypted: a [Question], [Confirmation] or [Prompt], and what the person did or said. Logins have
	// none.
	Input  []byte `json:"input,omitempty"`
	Answer []byte `json:"answer,omitempty"`
	// Movable says that the server alone decides who gives the credential, so that it is asked again when the login begins.
	Movable bool `json:"movable,omitempty"`
	// Metadata is where the server's challenge said that its resource metadata is; empty means the well-known places.
	Metadata string `json:"metadata,omitempty"`
	// Device says that the person answers on another device, with a code (RFC 8628).
	Device bool `json:"device,omitempty"`
	// IDToken says that the tool sends the ID token: a login that gives none is no answer.
	IDToken bool `json:"id_token,omitempty"`
	// Relaxed are the rules that the definition gave up for this login ("omit_resource"), for log and audit.
	Relaxed []string `json:"relaxed,omitempty"`
	// Typed is set where a person is asked to type the credential in: what it is and how it is sent.
	Typed *Key `json:"typed,omitempty"`
}

// Provider is an authorization server.
type Provider struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
	RegistrationEndpoint  string `json:"registration_endpoint,omitempty"`
	RevocationEndpoint    string `json:"revocation_endpoint,omitempty"`
	// ClientMetadata is client_id_metadata_document_supported: the URL of our metadata document is our client id there.
	ClientMetadata bool `json:"client_metadata,omitempty"`
	// IssAdvertised is authorization_response_iss_parameter_supported (RFC 9207 section 3).
	IssAdvertised bool `json:"iss_advertised,omitempty"`
	// Discovered says that the endpoints come from metadata, so that Issuer is an identifier and not a label.
	Discovered  bool     `json:"discovered,omitempty"`
	AuthMethods []string `json:"auth_methods,omitempty"`
	// AssertionAlgs is token_endpoint_auth_signing_alg_values_supported.
	AssertionAlgs []string `json:"assertion_algs,omitempty"`
	// JWKSURI is where the keys of ID tokens are, IDTokenAlgs what they are signed with; empty means unknown.
	JWKSURI     string   `json:"jwks_uri,omitempty"`
	IDTokenAlgs []string `json:"id_token_algs,omitempty"`
	// DeviceEndpoint is device_authorization_endpoint (RFC 8628 section 4).
	DeviceEndpoint string   `json:"device_endpoint,omitempty"`
	Scopes         []string `json:"scopes,omitempty"` // scopes_supported
}

// Client is how we are known at the provider.
type Client struct {
	// ID is empty until a dynamic client is registered.
	ID     string          `json:"id,omitempty"`
	Secret agent.SecretRef `json:"secret,omitempty"`
	Auth   string          `json:"auth,omitempty"`
	// Key, KeyID and Audience are those of private_key_jwt; an empty Audience is the issuer, or where the definition names none
	// the token endpoint.
	Key      agent.SecretRef   `json:"key,omitempty"`
	KeyID    string            `json:"key_id,omitempty"`
	Audience string            `json:"audience,omitempty"`
	Params   map[string]string `json:"params,omitempty"`
}

// Own returns the scopes that the need itself has, whatever it asks for on behalf of others.
func (n Need) Own() []string {
	if n.Wanted != nil {
		return n.Wanted
	}
	return n.Scopes
}

// SameLogin says whether one login at a provider can answer both needs, scopes apart: besides the slot, which two
// definitions may share, everything that decides where the person and the code are sent is the same: also, where a server
// is asked once more, which server.
func (n Need) SameLogin(o Need) bool {
	provider := n.Provider.Discovered && o.Provider.Discovered ||
		n.Provider.Discovered == o.Provider.Discovered && n.Provider.TokenEndpoint == o.Provider.TokenEndpoint &&
			n.Provider.AuthorizationEndpoint == o.Provider.AuthorizationEndpoint
	return n.Login() && n.Type == o.Type && n.Slot == o.Slot && provider && n.IDToken == o.IDToken && n.Device == o.Device &&
		n.Movable == o.Movable && (!n.Movable || n.Server == o.Server) && reflect.DeepEqual(n.Client, o.Client) && slices.Equal(n.Relaxed, o.Relaxed)
}

// RequiredError says that a tool cannot go on before a person has logged in. It starts the wait; it is no failure.
type RequiredError struct{ Need Need }

// Error implements error.
func (e *RequiredError) Error() string {
	return fmt.Sprintf("a login at %s is needed", e.Need.Slot.Issuer)
}
