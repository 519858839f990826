package oauth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"strings"

	"tarry/auth"
)

// checkNonce compares the nonce of an ID token. The token came straight from the token endpoint over TLS, so its
// signature need not be checked (OpenID Connect Core section 3.1.3.7, item 6). No ID token is no error: we want access.
func checkNonce(idToken, nonce auth.Secret) error {
	if idToken.IsZero() || nonce.IsZero() {
		return nil
	}
	parts := strings.Split(idToken.Reveal(), ".")
	if len(parts) != 3 {
		return ErrIdentity
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ErrIdentity
	}
	var claims struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return ErrIdentity
	}
	if subtle.ConstantTimeCompare([]byte(claims.Nonce), []byte(nonce.Reveal())) != 1 {
		return ErrIdentity
	}
	return nil
}
