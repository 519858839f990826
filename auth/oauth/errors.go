package oauth

import (
	"errors"
	"fmt"
	"strings"

	"tarry/auth"
	"tarry/auth/discovery"
)

// Errors of [Service.Begin] and [Service.Complete], for the page. Their texts are fixed.
var (
	// ErrUnknownState: no login that we began. Nothing was changed.
	ErrUnknownState = errors.New("oauth: this login was not begun here")
	// ErrBadCallback: neither a code nor an error, or too long to be one.
	ErrBadCallback = errors.New("oauth: the provider's answer is incomplete")
	// ErrWrongBrowser: another browser began the login.
	ErrWrongBrowser = errors.New("oauth: another browser began this login")
	// ErrWrongUser: somebody else was asked.
	ErrWrongUser = errors.New("oauth: somebody else was asked to log in")
	// ErrExpiredFlow: the login took too long; the request may still wait.
	ErrExpiredFlow = errors.New("oauth: this login took too long")
	// ErrSpentFlow: the login was tried and did not work out; the request waits for another.
	ErrSpentFlow = errors.New("oauth: this login has ended, begin another")
	// ErrRefusedCode: the code was seen in a wrong browser and is never used again.
	ErrRefusedCode = errors.New("oauth: this code was refused before")
	// ErrIssuer: the answer is not from the server that the person was sent to (RFC 9207).
	ErrIssuer = errors.New("oauth: the answer came from another provider")
	// ErrIdentity: the ID token is not for this login.
	ErrIdentity = errors.New("oauth: the identity does not belong to this login")
	// ErrClosed: nobody waits for this login any more.
	ErrClosed = errors.New("oauth: the request does not wait any more")
	// ErrMoved: the server names another provider than the person was shown. The request asks for a login there by now; show
	// the page again.
	ErrMoved = errors.New("oauth: the server names another provider by now")
	// ErrBusy: a login of this request is being completed at this moment.
	ErrBusy = errors.New("oauth: a login is being completed")
)

// Refusals that an operator can mend, both [auth.ErrMisconfigured]. Beginning again does not help.
var (
	// ErrResourceRefused: the provider rejects the resource parameter (RFC 8707).
	ErrResourceRefused = fmt.Errorf("%w: the provider takes no resource parameter; write omit_resource: true under tarry in the definition", auth.ErrMisconfigured)
	// ErrScopeRefused: the provider rejects the scopes.
	ErrScopeRefused = fmt.Errorf("%w: the provider does not take these scopes; limit them with max_scopes under tarry in the definition", auth.ErrMisconfigured)
)

// Errors of [auth.Broker] beyond those of package auth.
var (
	// ErrForbidden: HTTP 403 that no login would change.
	ErrForbidden = errors.New("oauth: the server refuses this although the login is valid")
	// ErrScopeLimit: the server wants scopes that the definition does not allow.
	ErrScopeLimit = errors.New("oauth: the server wants scopes beyond max_scopes")
)

// ProviderError is an error that a provider answered with.
type ProviderError struct {
	// Code is the OAuth error code, reduced to letters, digits and a few signs and cut; "unrecognized" if that leaves
	// nothing.
	Code string
}

// Error implements error.
func (e *ProviderError) Error() string { return "oauth: the provider answered " + e.Code }

func newProviderError(code string) *ProviderError { return &ProviderError{Code: cleanCode(code)} }

const maxCode = 48

// cleanCode makes a provider's text safe to log and show, and maps the codes that large providers made up. Error codes are
// lower-case words; what has capitals or digits may well be the code or token that was sent, repeated.
func cleanCode(code string) string {
	if len(code) > maxCode || code == "" || strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '_' && r != '-' && r != '.'
	}) {
		return "unrecognized"
	}
	switch code {
	case "bad_refresh_token", "bad_verification_code", // GitHub
		"invalid_refresh_token", "token_expired", "token_revoked", "invalid_code", "code_already_used": // Slack
		return codeInvalidGrant
	case "incorrect_client_credentials", "bad_client_secret", "invalid_client_id":
		return codeInvalidClient
	}
	return code
}

// explain adds to a provider's answer what an operator can do about it.
func explain(f Flow, cause error) error {
	switch code := providerCode(cause); {
	case code == codeInvalidClient && f.Client.Auth == authKey:
		return fmt.Errorf("%w: %w", unknownClient(discovery.Host(f.Provider.TokenEndpoint), f.Client), cause)
	case code == codeInvalidTarget && f.Resource != "":
		return fmt.Errorf("%w (resource on %s): %w", ErrResourceRefused, discovery.Host(f.Resource), cause)
	case code == codeInvalidScope && len(f.Scopes) > 0:
		return fmt.Errorf("%w (%s): %w", ErrScopeRefused, shorten(f.Scopes), cause)
	}
	return cause
}

const (
	codeInvalidTarget = "invalid_target"
	codeInvalidScope  = "invalid_scope"
	codeInvalidGrant  = "invalid_grant"
	codeInvalidClient = "invalid_client"
	codeAccessDenied  = "access_denied"
)

// providerCode returns the code if err is a provider's answer.
func providerCode(err error) string {
	var p *ProviderError
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// misconfigured makes an error whose text, written by us, tells an operator what to change.
func misconfigured(format string, args ...any) error {
	return fmt.Errorf("%w: %s", auth.ErrMisconfigured, fmt.Sprintf(format, args...))
}
