//go:build interop

package interop_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// claims are those of an access token, RFC 9068 section 2.2.
type claims struct {
	Issuer   string `json:"iss"`
	Audience any    `json:"aud"`
	Subject  string `json:"sub"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	Expires  int64  `json:"exp"`
	Issued   int64  `json:"iat"`
	ID       string `json:"jti"`
}

// verify checks an access token as RFC 9068 section 4 asks, its expiry excepted, with the keys that the server publishes.
func (a *authorizationServer) verify(token, audience string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("not a JWT")
	}
	var header struct{ Alg, Kid, Typ string }
	if err := errors.Join(decode(parts[0], &header), decode(parts[1], &c)); err != nil {
		return c, err
	}
	if header.Alg != "RS256" || header.Typ != "at+jwt" {
		return c, fmt.Errorf("a %s signed with %s", header.Typ, header.Alg)
	}
	key := a.keys[header.Kid]
	if key == nil {
		return c, errors.New("unknown key")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return c, fmt.Errorf("decode signature: %w", err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		return c, fmt.Errorf("verify signature: %w", err)
	}
	if c.Issuer != a.issuer {
		return c, errors.New("token of another issuer")
	}
	if c.Audience != audience {
		return c, errors.New("token for another resource")
	}
	return c, nil
}

func decode(part string, out any) error {
	body, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return fmt.Errorf("decode part: %w", err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode part: %w", err)
	}
	return nil
}

// loadKeys reads the keys that the server signs with.
func (a *authorizationServer) loadKeys() {
	a.t.Helper()
	var set struct {
		Keys []struct{ Kid, Kty, N, E string }
	}
	require.NoError(a.t, json.Unmarshal(a.get("/jwks"), &set))
	a.keys = map[string]*rsa.PublicKey{}
	for _, k := range set.Keys {
		if k.Kty != "RSA" {
			continue
		}
		n, err := base64.RawURLEncoding.DecodeString(k.N)
		require.NoError(a.t, err)
		e, err := base64.RawURLEncoding.DecodeString(k.E)
		require.NoError(a.t, err)
		a.keys[k.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
}

// demoIssuer lets the demo's MCP server take the authorization server's tokens.
type demoIssuer struct {
	*authorizationServer
	resource func() string
}

func (d demoIssuer) Issuer() string { return d.issuer }

func (d demoIssuer) Verify(token string) (demo.Token, bool) {
	c, err := d.verify(token, d.resource())
	expires := time.Unix(c.Expires, 0)
	if err != nil || !time.Now().Before(expires) {
		return demo.Token{}, false
	}
	return demo.Token{
		User: c.Subject, ClientID: c.ClientID, Resource: d.resource(), Scopes: strings.Fields(c.Scope), Expires: expires,
	}, true
}
