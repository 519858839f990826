package demo

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// AuthPrivateKey is the method of clients that sign (OpenID Connect Core section 9).
const AuthPrivateKey = "private_key_jwt"

// assertionTypes are the only kind of client assertion that the provider takes (RFC 7523 section 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// asserted is RFC 7523 section 3, with the issuer as the one audience. The mutex is held.
func (p *Provider) asserted(form url.Values) (Client, bool) {
	raw := form.Get("client_assertion")
	p.journal.secrets.Assertions = appendNew(p.journal.secrets.Assertions, raw)
	c, known := p.clients[form.Get("client_id")]
	if !known || c.AuthMethod != AuthPrivateKey || form.Get("client_assertion_type") != assertionType || form.Has("client_secret") {
		return Client{}, false
	}
	jws, err := jose.ParseSigned(raw, []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA})
	if err != nil {
		return Client{}, false
	}
	payload, err := jws.Verify(c.PublicKey)
	if err != nil {
		return Client{}, false
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"` // a list is refused
		ID       string `json:"jti"`
		Expiry   int64  `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return Client{}, false
	}
	left := time.Unix(claims.Expiry, 0).Sub(p.now())
	fits := claims.Issuer == c.ID && claims.Subject == c.ID && claims.Audience == p.url+p.cfg.IssuerPath &&
		left > 0 && left <= 5*time.Minute+time.Second && claims.ID != "" && !slices.Contains(p.assertionIDs, claims.ID)
	p.assertionIDs = append(p.assertionIDs, strings.Clone(claims.ID))
	return c, fits
}
