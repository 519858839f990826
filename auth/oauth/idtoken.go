package oauth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"tarry/auth"
	"tarry/auth/discovery"
)

const (
	// keyTries is how often the keys of a provider are asked for when a login hangs on them.
	keyTries = 3
	// maxLabel and maxSubject bound what a provider says of an account, in bytes (a subject has at most 255: OpenID Connect
	// Core section 2).
	maxLabel   = 200
	maxSubject = 255
)

// identity is what a verified ID token says; the zero value is nothing.
type identity struct {
	verified bool
	account  Account
}

// identify verifies an ID token (OpenID Connect Core section 3.1.3.7): signature, issuer, audience, time, and nonce if there is
// one. Where the provider's keys are not known, the nonce is all that can be compared, and nothing that the token says is
// believed. No ID token is no error. Errors: [ErrIdentity], [auth.ErrUnavailable].
func (s *Service) identify(ctx context.Context, p auth.Provider, clientID string, raw, nonce auth.Secret) (identity, error) {
	switch {
	case raw.IsZero():
		return identity{}, nil
	case p.JWKSURI == "":
		return identity{}, checkNonce(raw, nonce)
	}
	keys := s.keys.of(p.JWKSURI, s.cfg.HTTP) //nolint:contextcheck // the keys outlive this login
	verifier := oidc.NewVerifier(p.Issuer, keys, &oidc.Config{ClientID: clientID, SupportedSigningAlgs: idTokenAlgs(p.IDTokenAlgs), Now: s.cfg.Now})
	var token *oidc.IDToken
	for attempt := 1; ; attempt++ {
		failed := keys.failures()
		var err error
		if token, err = verifier.Verify(ctx, raw.Reveal()); err == nil {
			break
		}
		// The library's errors repeat what the provider wrote.
		if keys.failures() == failed && ctx.Err() == nil {
			return identity{}, ErrIdentity
		}
		if attempt == keyTries || !pause(ctx, time.Duration(attempt)*100*time.Millisecond) {
			return identity{}, fmt.Errorf("%w: the keys of %s cannot be read", auth.ErrUnavailable, discovery.Host(p.Issuer))
		}
	}
	var claims struct {
		Email           string `json:"email"`
		AuthorizedParty string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return identity{}, ErrIdentity
	}
	switch {
	case !nonce.IsZero() && subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce.Reveal())) != 1,
		claims.AuthorizedParty != "" && claims.AuthorizedParty != clientID,
		len(token.Audience) > 1 && claims.AuthorizedParty == "",
		token.Subject == "" || len(token.Subject) > maxSubject:
		return identity{}, ErrIdentity
	}
	out := identity{verified: true, account: Account{Subject: token.Subject, Label: claims.Email}}
	if len(out.account.Label) > maxLabel {
		out.account.Label = ""
	}
	return out, nil
}

// idTokenAlgs are those that a provider announces, if they are signatures that only it can make: an HMAC is made with the
// client's secret, and "none" is none.
func idTokenAlgs(announced []string) []string {
	known := []string{oidc.RS256, oidc.ES256, oidc.PS256, oidc.EdDSA, oidc.RS384, oidc.ES384, oidc.PS384, oidc.RS512, oidc.ES512, oidc.PS512}
	if len(announced) == 0 {
		return known
	}
	return slices.DeleteFunc(known, func(alg string) bool { return !slices.Contains(announced, alg) })
}

// checkNonce compares the nonce of an ID token alone. The token came straight from the token endpoint over TLS, so that a
// login may go on without its signature (OpenID Connect Core section 3.1.3.7, item 6).
func checkNonce(idToken, nonce auth.Secret) error {
	if nonce.IsZero() {
		return nil
	}
	var claims struct {
		Nonce string `json:"nonce"`
	}
	if err := readClaims(idToken, &claims); err != nil {
		return ErrIdentity
	}
	if subtle.ConstantTimeCompare([]byte(claims.Nonce), []byte(nonce.Reveal())) != 1 {
		return ErrIdentity
	}
	return nil
}

var errNoToken = errors.New("oauth: not a JWT")

// readClaims decodes the claims of a JWT, believed or not.
func readClaims(token auth.Secret, out any) error {
	parts := strings.Split(token.Reveal(), ".")
	if len(parts) != 3 {
		return errNoToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return errNoToken
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return errNoToken
	}
	return nil
}

// endOf is the exp of an ID token that was verified when it was stored.
func endOf(idToken auth.Secret) time.Time {
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	if err := readClaims(idToken, &claims); err != nil || claims.Expiry <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expiry), 0)
}
