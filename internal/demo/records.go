package demo

import (
	"crypto/rand"
	"slices"
	"time"
)

// authorization is a checked authorization request on its way through the pages.
type authorization struct {
	id          string
	client      Client
	redirectURI string
	state       string
	challenge   string
	resource    string
	nonce       string
	scopes      []string
}

// grant is what a person approved. All tokens that descend from one approval share it and fall with it.
type grant struct {
	user     string
	clientID string
	resource string
	scopes   []string
	nonce    string
	person   bool // somebody has approved it
	revoked  bool
}

type code struct {
	grant       *grant
	redirectURI string
	challenge   string
	expires     time.Time
	used        bool
}

type accessToken struct {
	grant   *grant
	scopes  []string
	expires time.Time
	revoked bool
}

type refreshToken struct {
	grant *grant
	used  bool
}

// Token is what the provider knows of a valid access token.
type Token struct {
	User, ClientID, Resource string
	Scopes                   []string
	Expires                  time.Time
}

// Verify looks an access token up. It is false for one that is unknown, expired or revoked.
func (p *Provider) Verify(token string) (Token, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.access[token]
	if !ok || t.revoked || t.grant.revoked || !p.now().Before(t.expires) {
		return Token{}, false
	}
	return Token{
		User: t.grant.user, ClientID: t.grant.clientID, Resource: t.grant.resource,
		Scopes: slices.Clone(t.scopes), Expires: t.expires,
	}, true
}

// Issue makes an access token for user without any page, as if it had been approved. ttl 0 means one hour.
func (p *Provider) Issue(user, resource string, ttl time.Duration, scopes ...string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ttl == 0 {
		ttl = defaultAccessTTL
	}
	g := &grant{user: user, clientID: "issued", resource: resource, scopes: slices.Clone(scopes)}
	return p.newAccess(g, g.scopes, ttl)
}

// RevokeAll withdraws every grant: access and refresh tokens, and codes that were not redeemed yet.
func (p *Provider) RevokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.access {
		t.grant.revoked = true
	}
	for _, t := range p.refresh {
		t.grant.revoked = true
	}
	for _, c := range p.codes {
		c.grant.revoked = true
	}
}

// RevokeAccessTokens withdraws every access token; refresh tokens stay, so a client can get a new one.
func (p *Provider) RevokeAccessTokens() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.access {
		t.revoked = true
	}
}

// Advance moves the provider's clock, so that what it issued expires without anybody waiting.
func (p *Provider) Advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset += d
}

// now is the provider's time. The mutex is held.
func (p *Provider) now() time.Time { return time.Now().Add(p.offset) }

// newCode, newAccess and newRefresh issue and note a secret. The mutex is held.
func (p *Provider) newCode(c *code) string {
	v := p.mint("code")
	p.codes[v] = c
	p.journal.secrets.Codes = append(p.journal.secrets.Codes, v)
	return v
}

func (p *Provider) newAccess(g *grant, scopes []string, ttl time.Duration) string {
	v := p.mint("at")
	p.access[v] = &accessToken{grant: g, scopes: scopes, expires: p.now().Add(ttl)}
	p.journal.secrets.AccessTokens = append(p.journal.secrets.AccessTokens, v)
	return v
}

func (p *Provider) newRefresh(g *grant) string {
	v := p.mint("rt")
	p.refresh[v] = &refreshToken{grant: g}
	p.journal.secrets.RefreshTokens = append(p.journal.secrets.RefreshTokens, v)
	return v
}

// mint makes a secret: its kind, the mark, and 130 random bits.
func (p *Provider) mint(kind string) string {
	return kind + "_" + p.cfg.Mark + rand.Text()
}
