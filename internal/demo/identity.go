package demo

import (
	"crypto/rand"
	"crypto/rsa"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Scopes of OpenID Connect: any client may ask for them, whatever the config lists. With ScopeOpenID a request needs no
// resource, and its answer has an ID token.
const (
	ScopeOpenID  = "openid"
	ScopeEmail   = "email"
	ScopeProfile = "profile"
)

func identityScopes() []string { return []string{ScopeOpenID, ScopeEmail, ScopeProfile} }

// signer holds the provider's keys; they are made when they are first needed.
type signer struct {
	once       sync.Once
	err        error
	key, other *rsa.PrivateKey
}

const signingKeyID = "demo-1"

func (s *signer) keys() (key, other *rsa.PrivateKey, err error) {
	s.once.Do(func() {
		if s.key, s.err = rsa.GenerateKey(rand.Reader, 2048); s.err == nil {
			s.other, s.err = rsa.GenerateKey(rand.Reader, 2048)
		}
	})
	return s.key, s.other, s.err
}

// jwks is RFC 7517 section 5.
func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) {
	if p.Faults().NoJWKS {
		http.Error(w, "no keys today", http.StatusServiceUnavailable)
		return
	}
	key, _, err := p.signer.keys()
	if err != nil {
		http.Error(w, "no keys", http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
		Key: key.Public(), KeyID: signingKeyID, Algorithm: string(jose.RS256), Use: "sig",
	}}})
}

// Subject is the sub claim of a user.
func Subject(user string) string { return "ledger-" + user }

// Email is the email claim of a user.
func Email(user string) string { return user + "@ledger.example" }

// identify adds an ID token (OpenID Connect Core section 2) to an answer about a person, if one was asked for. The mutex is held.
func (p *Provider) identify(fields map[string]any, g *grant, ttl time.Duration) {
	f := p.faults
	if !slices.Contains(g.scopes, ScopeOpenID) || f.NoIDToken {
		return
	}
	key, other, err := p.signer.keys()
	if err != nil {
		return
	}
	if f.ForgedIDToken {
		key = other
	}
	now := p.now()
	claims := map[string]any{
		"iss": p.url + p.cfg.IssuerPath, "sub": Subject(g.user), "aud": g.clientID, "iat": now.Unix(), "exp": now.Add(ttl).Unix(),
		"name": p.displayName(g.user),
	}
	if g.nonce != "" {
		claims["nonce"] = g.nonce
	}
	if slices.Contains(g.scopes, ScopeEmail) {
		claims["email"], claims["email_verified"] = Email(g.user), true
	}
	maps.Copy(claims, f.IDTokenClaims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", signingKeyID)
	sign, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return
	}
	raw, err := jwt.Signed(sign).Claims(claims).Serialize()
	if err != nil {
		return
	}
	fields["id_token"] = raw
	p.journal.secrets.IDTokens = append(p.journal.secrets.IDTokens, raw)
}
