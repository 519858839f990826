package oauth

import (
	"encoding/json"
	"fmt"
	"time"

	"tarry/auth"
	"tarry/auth/vault"
)

// Columns of the associated data.
const (
	columnVerifier     = "verifier"
	columnNonce        = "nonce"
	columnAnswer       = "answer"
	columnParked       = "parked"
	columnClientSecret = "client_secret"
	columnAccess       = "access"
	columnRefresh      = "refresh"
	columnIDToken      = "id_token"
	columnDevice       = "device"
)

func (f Flow) ad(column string) vault.AD {
	return vault.AD{
		App: f.Owner.App, User: f.Owner.User, Row: "flow/" + f.StateHash, Issuer: f.Provider.Issuer, Resource: f.Resource,
		Client: f.Client.ID, TokenEndpoint: f.Provider.TokenEndpoint, Column: column,
	}
}

// ad binds tokens to what they expire at. The row's own version is given by the store when it commits, too late for the
// seal; the expiry changes with every token too, and so cannot be moved without the tokens.
func (g Grant) ad(column string) vault.AD {
	version := int64(0)
	if column != columnClientSecret && !g.Expires.IsZero() {
		version = g.Expires.Unix()
	}
	return vault.AD{
		App: g.Slot.Owner.App, User: g.Slot.Owner.User, Row: "grant/" + g.ID, Issuer: g.Slot.Issuer, Resource: g.Slot.Resource,
		Client: g.Client.ID, TokenEndpoint: g.Provider.TokenEndpoint, Column: column, Version: version,
	}
}

// ad binds a client's secret to the token endpoint that it was made for: if the issuer names another one later, the
// client is registered anew instead of showing that endpoint the secret.
func (r Registration) ad(tokenEndpoint string) vault.AD {
	return vault.AD{
		Row: "registration/" + r.RedirectURI, Issuer: r.Issuer, Client: r.ClientID, TokenEndpoint: tokenEndpoint,
		Column: columnClientSecret,
	}
}

// seal leaves nothing empty.
func (s *Service) seal(plain auth.Secret, ad vault.AD) ([]byte, error) {
	if plain.IsZero() {
		return nil, nil
	}
	out, err := s.cfg.Vault.Seal(plain, ad)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", ad.Column, err)
	}
	return out, nil
}

func (s *Service) unseal(cipher []byte, ad vault.AD) (auth.Secret, error) {
	if len(cipher) == 0 {
		return auth.Secret{}, nil
	}
	plain, err := s.cfg.Vault.Open(cipher, ad)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("unseal %s: %w", ad.Column, err)
	}
	return plain, nil
}

// setTokens puts tokens into g, sealed. g has its id, slot, provider and client.
func (s *Service) setTokens(g *Grant, access, refresh auth.Secret, expires time.Time) error {
	g.Expires, g.Life = expires.Truncate(time.Second), 0
	if !g.Expires.IsZero() {
		g.Life = g.Expires.Sub(s.cfg.Now())
	}
	var err error
	if g.Access, err = s.seal(access, g.ad(columnAccess)); err != nil {
		return err
	}
	g.Refresh, err = s.seal(refresh, g.ad(columnRefresh))
	return err
}

// setIDToken puts a verified ID token into g, sealed, beside the tokens that it came with.
func (s *Service) setIDToken(g *Grant, id auth.Secret) (err error) {
	g.IDToken, err = s.seal(id, g.ad(columnIDToken))
	return err
}

// answer is what a callback said. All of it is written ahead, so that a recovery checks what the callback would have.
type answer struct {
	Code       string `json:"code,omitempty"`
	Error      string `json:"error,omitempty"`
	Iss        string `json:"iss,omitempty"`
	IssPresent bool   `json:"iss_present,omitempty"`
}

func (s *Service) sealAnswer(a answer, f Flow) ([]byte, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return s.seal(auth.NewSecret(string(raw)), f.ad(columnAnswer))
}

func (s *Service) openAnswer(f Flow) (a answer, err error) {
	plain, err := s.unseal(f.Code, f.ad(columnAnswer))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(plain.Reveal()), &a); err != nil {
		return a, fmt.Errorf("decode answer: %w", vault.ErrCipher)
	}
	return a, nil
}
