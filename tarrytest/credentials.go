package tarrytest

import (
	"cmp"
	"context"
	"sync"

	"tarry/agent"
	"tarry/auth"
)

// Credentials are the logins of one person, by credential key. A toolset that declares no credential has its own name as
// key. The zero value holds none; safe for concurrent use.
type Credentials struct {
	mu     sync.Mutex
	tokens map[string]auth.AccessToken
	last   int64
}

// Grant stores a token under a key; it replaces the one that was there.
func (c *Credentials) Grant(key, token string, scopes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[string]auth.AccessToken{}
	}
	c.last++
	c.tokens[key] = auth.AccessToken{Access: auth.NewSecret(token), Version: c.last, Scopes: scopes}
}

// Revoke forgets the token of a key.
func (c *Credentials) Revoke(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, key)
}

// token returns the token of a key if it is newer than a version that was refused.
func (c *Credentials) token(key string, refused int64) (auth.AccessToken, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tokens[key]
	return t, ok && t.Version > refused
}

// Broker gives an owner's tools these credentials, and the typed error that starts a wait where there is none.
func (c *Credentials) Broker(owner agent.Owner, scrub *auth.Scrubber) auth.Broker {
	return &broker{credentials: c, owner: owner, scrub: scrub}
}

type broker struct {
	credentials *Credentials
	owner       agent.Owner
	scrub       *auth.Scrubber
}

func keyOf(w auth.Want) string { return cmp.Or(w.Auth.Key, w.Toolset, w.Tool) }

// Token implements [auth.Broker].
func (b *broker) Token(_ context.Context, want auth.Want) (auth.AccessToken, error) {
	if t, ok := b.credentials.token(keyOf(want), want.Refused); ok {
		b.scrub.Add(t.Access)
		return t, nil
	}
	return auth.AccessToken{}, b.required(want)
}

// Challenged implements [auth.Broker].
func (b *broker) Challenged(_ context.Context, want auth.Want, c auth.Challenge) error {
	want.Refused = max(want.Refused, c.Used)
	if _, ok := b.credentials.token(keyOf(want), want.Refused); ok {
		return nil
	}
	return b.required(want)
}

func (b *broker) required(want auth.Want) error {
	issuer := cmp.Or(want.Auth.Issuer, "https://login.example")
	return &auth.RequiredError{Need: auth.Need{
		Slot:   auth.Slot{Owner: b.owner, Domain: keyOf(want), Issuer: issuer, Resource: want.Auth.Resource, Client: auth.ClientPreregistered + want.Auth.ClientID},
		Scopes: want.Auth.Scopes, Key: keyOf(want), Type: cmp.Or(string(want.Auth.Type), string(agent.AuthOAuth2)), Tool: want.Tool, Toolset: want.Toolset,
		Server: want.Server, Refused: want.Refused,
		Provider: auth.Provider{
			Issuer: issuer, AuthorizationEndpoint: cmp.Or(want.Auth.AuthorizationURL, issuer+"/authorize"), TokenEndpoint: cmp.Or(want.Auth.TokenURL, issuer+"/token"),
		},
		Client: auth.Client{ID: want.Auth.ClientID},
	}}
}
