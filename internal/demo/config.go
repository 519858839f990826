package demo

import (
	"slices"
	"time"
)

// DefaultMark is part of every secret that a provider issues, unless its config says otherwise.
const DefaultMark = "tarrycanary_"

// Client authentication methods of RFC 7591 section 2 that the provider knows.
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
)

// Scopes of the demo's MCP server.
const (
	ScopeRead    = "tickets:read"
	ScopeWrite   = "tickets:write"
	ScopePublish = "plans:publish"
	// ScopeOffline is listed and needed for a refresh token only with [Faults.RequireOfflineAccess].
	ScopeOffline = "offline_access"
)

// User can sign in at the provider.
type User struct {
	Name, Password string
	// DisplayName is shown on the consent page; empty means Name.
	DisplayName string
}

// Client is a client of the provider, registered beforehand or by RFC 7591.
type Client struct {
	ID string
	// Secret is empty for a public client.
	Secret string
	Name   string
	// PublicKey is what AuthPrivateKey verifies with: of package rsa, ecdsa or ed25519.
	PublicKey any
	// AuthMethod is one of AuthNone, AuthBasic, AuthPost and AuthPrivateKey; empty means AuthNone without and AuthBasic with a secret.
	AuthMethod string
	// RedirectURIs are compared byte by byte.
	RedirectURIs []string
	// GrantTypes limits the grants; empty means authorization_code and refresh_token.
	GrantTypes []string
}

func (c Client) allows(grantType string) bool {
	return len(c.GrantTypes) == 0 || slices.Contains(c.GrantTypes, grantType)
}

// ProviderConfig describes a provider. The zero value is a strict one on a free loopback port.
type ProviderConfig struct {
	// URL is the base URL if the provider is mounted in somebody else's server; [Provider.Start] sets it otherwise.
	URL string
	// IssuerPath is appended to the base URL to form the issuer: "" for none, "/tenant", or "/" for an issuer that
	// ends in a slash.
	IssuerPath string
	// Users who can sign in; nil means alice and bob, each with the password "<name>-password".
	Users []User
	// Clients that are registered beforehand. [Provider.AddClient] adds more.
	Clients []Client
	// Scopes the provider knows; nil means ScopeRead, ScopeWrite and ScopePublish.
	Scopes []string
	// Mark is part of every secret; empty means DefaultMark.
	Mark string
	// Name is shown on the pages; empty means "Ledger ID".
	Name string
	// Faults it starts with.
	Faults Faults
}

func (c ProviderConfig) withDefaults() ProviderConfig {
	if c.Users == nil {
		c.Users = []User{
			{Name: "alice", Password: "alice-password", DisplayName: "Alice"},
			{Name: "bob", Password: "bob-password", DisplayName: "Bob"},
		}
	}
	if c.Scopes == nil {
		c.Scopes = []string{ScopeRead, ScopeWrite, ScopePublish}
	}
	if c.Mark == "" {
		c.Mark = DefaultMark
	}
	if c.Name == "" {
		c.Name = "Ledger ID"
	}
	return c
}

// defaultAccessTTL is the lifetime of an access token where Faults names none.
const defaultAccessTTL = time.Hour

// codeTTL is the lifetime of an authorization code.
const codeTTL = time.Minute
