package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/vault"
)

// Reasons why a provider has not revoked tokens, besides those of reasonOf.
const (
	reasonNoRevocation = "no revocation endpoint"
	reasonDamaged      = "damaged"
)

// revoke has the provider of g take its tokens back (RFC 7009), the refresh token first: at most providers the others go with
// it. It returns "", or a reason from our own vocabulary or the provider's error code.
func (s *Service) revoke(ctx context.Context, g Grant) string {
	err := s.revokeBoth(ctx, g)
	if err == nil {
		return ""
	}
	s.cfg.Log.WarnContext(ctx, "provider not told that an account was disconnected", "grant_id", g.ID,
		"provider", discovery.Host(g.Slot.Issuer), "err", err)
	switch {
	case errors.Is(err, errNoRevocation):
		return reasonNoRevocation
	case errors.Is(err, vault.ErrCipher):
		return reasonDamaged
	}
	return reasonOf(err)
}

var errNoRevocation = errors.New("oauth: the provider has no revocation endpoint")

func (s *Service) revokeBoth(ctx context.Context, g Grant) error {
	if !g.Provider.Discovered {
		return errNoRevocation
	}
	// Where tokens go is asked of the issuer, to which they are bound: the row's own word for the endpoint is not sealed, and
	// whoever edits it would be sent the tokens.
	p, err := s.cfg.Discover.Issuer(ctx, g.Slot.Issuer)
	switch {
	case err != nil:
		return fmt.Errorf("discover revocation endpoint: %w", err)
	case p.RevocationEndpoint == "":
		return errNoRevocation
	}
	g.Provider.RevocationEndpoint = p.RevocationEndpoint
	secret, err := s.clientSecret(ctx, g.Client, g.ClientSecret, g.ad(columnClientSecret))
	if err != nil {
		return err
	}
	if len(g.Refresh) > 0 {
		if err := s.revokeToken(ctx, g, secret, g.Refresh, columnRefresh); err != nil {
			return err
		}
	}
	err = s.revokeToken(ctx, g, secret, g.Access, columnAccess)
	// Some take back refresh tokens alone (RFC 7009 section 2), and access tokens end by themselves.
	if providerCode(err) == codeUnsupportedType && len(g.Refresh) > 0 {
		return nil
	}
	return err
}

const codeUnsupportedType = "unsupported_token_type"

func (s *Service) revokeToken(ctx context.Context, g Grant, secret auth.Secret, sealed []byte, column string) error {
	token, err := s.unseal(sealed, g.ad(column))
	if err != nil || token.IsZero() {
		return err
	}
	form := url.Values{"token": {token.Reveal()}, "token_type_hint": {column + "_token"}}
	answer, err := s.post(ctx, g.Provider, g.Client, secret, g.Provider.RevocationEndpoint, form)
	if err != nil {
		return err
	}
	// Unknown tokens are answered with 200 too (RFC 7009 section 2.2); what the body says does not matter then.
	if answer.status >= http.StatusOK && answer.status < http.StatusMultipleChoices {
		return nil
	}
	if fields, err := tokenFields(answer.contentType, answer.body); err == nil && fields["error"] != "" && answer.status < http.StatusInternalServerError {
		return &ProviderError{Code: cleanCode(fields["error"])}
	}
	return auth.ErrUnavailable
}
