package demo

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// APIToken makes an access token of RFC 9068 about a user for the API of audience, as the provider's token endpoint might for a
// program of that user's. It is good for life.
func (p *Provider) APIToken(user, audience string, life time.Duration) (string, error) {
	key, _, err := p.signer.keys()
	if err != nil {
		return "", fmt.Errorf("make API token: %w", err)
	}
	options := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", signingKeyID)
	sign, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return "", fmt.Errorf("make API token: %w", err)
	}
	now := p.now()
	token, err := jwt.Signed(sign).Claims(map[string]any{
		"iss": p.Issuer(), "sub": Subject(user), "aud": audience, "client_id": "starter", "name": p.displayName(user),
		"iat": now.Unix(), "exp": now.Add(life).Unix(), "jti": randomID(),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("make API token: %w", err)
	}
	return token, nil
}
