package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// finish takes a flow that is exchanging to its end: the issuer first, then error or code. It does not stop when the
// browser goes away, since the code is spent by then.
func (s *Service) finish(ctx context.Context, access auth.Access, f Flow, a answer) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ExchangeTimeout+leaseMargin/2)
	defer cancel()
	// RFC 9207 section 2.4, before anything that the answer says is believed, its error included. A label is no issuer.
	p := f.Provider
	if p.Discovered && (a.IssPresent && a.Iss != p.Issuer || !a.IssPresent && p.IssAdvertised) {
		return s.reopen(ctx, access, f, "issuer", ErrIssuer)
	}
	switch {
	case a.Error == codeAccessDenied:
		return s.deny(ctx, access, f)
	case a.Error != "":
		cause := newProviderError(a.Error)
		return s.reopen(ctx, access, f, "provider: "+cause.Code, explain(f, cause))
	case a.Code == "":
		return s.reopen(ctx, access, f, "no code", ErrBadCallback)
	}
	got, err := s.exchange(ctx, f, a.Code)
	if err != nil {
		return s.exchangeFailed(ctx, access, f, err)
	}
	s.cfg.Fault(ctx, FaultExchanged)
	return s.commit(ctx, access, f, got)
}

// exchange is the token request of RFC 6749 section 4.1.3.
func (s *Service) exchange(ctx context.Context, f Flow, code string) (tokens, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ExchangeTimeout)
	defer cancel()
	verifier, err := s.unseal(f.Verifier, f.ad(columnVerifier))
	if err != nil {
		return tokens{}, err
	}
	nonce, err := s.unseal(f.Nonce, f.ad(columnNonce))
	if err != nil {
		return tokens{}, err
	}
	secret, err := s.clientSecret(ctx, f.Client, f.ClientSecret, f.ad(columnClientSecret))
	if err != nil {
		return tokens{}, err
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.RedirectURI}, "code_verifier": {verifier.Reveal()},
	}
	if f.Resource != "" {
		form.Set("resource", f.Resource)
	}
	got, err := s.requestTokens(ctx, f.Provider, f.Client, secret, form)
	if err != nil {
		return tokens{}, err
	}
	got.identity, err = s.identify(ctx, f.Provider, f.Client.ID, got.id, nonce)
	return got, err
}

func (s *Service) exchangeFailed(ctx context.Context, access auth.Access, f Flow, cause error) (Result, error) {
	reason := "exchange: " + reasonOf(cause)
	// A client that we registered and that the provider has forgotten would fail for ever.
	if providerCode(cause) == codeInvalidClient && f.Client.Secret == "" && f.Client.Key == "" {
		if err := s.cfg.Store.Unregister(ctx, f.Provider.Issuer, f.RedirectURI, f.Client.ID); err != nil {
			s.cfg.Log.ErrorContext(ctx, "unregister client", "request_id", f.Request, "err", err)
		}
	}
	return s.reopen(ctx, access, f, reason, explain(f, cause))
}

// reasonOf is a word for the audit log.
func reasonOf(err error) string {
	switch code := providerCode(err); {
	case code != "":
		return code
	case errors.Is(err, auth.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, auth.ErrMisconfigured):
		return "misconfigured"
	case errors.Is(err, ErrIdentity):
		return "identity"
	}
	return "failed"
}

func (s *Service) reopen(ctx context.Context, access auth.Access, f Flow, reason string, cause error) (Result, error) {
	s.cfg.Log.WarnContext(ctx, "login not completed", "request_id", f.Request, "provider", discovery.Host(f.Provider.TokenEndpoint), "err", cause)
	if err := s.cfg.Store.Reopen(ctx, f.StateHash, reason); err != nil && !errors.Is(err, ErrConflict) {
		return Result{}, fmt.Errorf("reopen request: %w", err)
	}
	out, err := s.outcome(ctx, access, f)
	if err != nil {
		return out, err
	}
	return out, cause
}

func (s *Service) deny(ctx context.Context, access auth.Access, f Flow) (Result, error) {
	err := s.cfg.Store.Deny(ctx, f.StateHash, codeAccessDenied)
	if err != nil && !errors.Is(err, ErrConflict) {
		return Result{}, fmt.Errorf("deny request: %w", err)
	}
	s.cfg.Wake()
	return s.outcome(ctx, access, f)
}

func (s *Service) outcome(ctx context.Context, access auth.Access, f Flow) (Result, error) {
	// The request that the flow was begun for may have ended, and another behind its link have taken the login over.
	now, err := s.cfg.Store.Flow(ctx, f.StateHash)
	if err != nil {
		return Result{}, fmt.Errorf("read login: %w", err)
	}
	r, err := s.cfg.Store.Request(ctx, now.Request, access)
	if err != nil {
		return Result{}, fmt.Errorf("read request: %w", err)
	}
	return Result{Outcome: r.Status, Request: r}, nil
}

func (s *Service) commit(ctx context.Context, access auth.Access, f Flow, got tokens) (Result, error) {
	r, err := s.cfg.Store.Request(ctx, f.Request, access)
	if err != nil {
		return Result{}, fmt.Errorf("commit login: %w", err)
	}
	if r.Need.IDToken && !got.identity.verified {
		return s.reopen(ctx, access, f, "no ID token", misconfigured("%s gave no ID token that can be verified, and the definition uses it: "+
			"allow client %q the scope openid, and see that the issuer publishes its keys", discovery.Host(f.Provider.TokenEndpoint), f.Client.ID))
	}
	g, missing, err := s.newGrant(f, r.Need, got)
	if err != nil {
		return Result{}, err
	}
	return s.save(ctx, access, f, g, missing)
}

// save stores a grant, and wakes who waits for it. Of another account than the slot's it parks it, and asks.
func (s *Service) save(ctx context.Context, access auth.Access, f Flow, g Grant, missing []string) (Result, error) {
	for attempt := 1; ; attempt++ {
		_, err := s.cfg.Store.Commit(ctx, f.StateHash, g)
		if err == nil {
			break
		}
		switch {
		case errors.Is(err, ErrConflict):
			return s.outcome(ctx, access, f) // closed meanwhile
		case errors.Is(err, ErrOtherAccount):
			return s.park(ctx, access, f, g, missing)
		}
		// The code is spent: what is not stored now is lost.
		if attempt == saveAttempts || !pause(ctx, time.Duration(attempt)*100*time.Millisecond) {
			return Result{}, fmt.Errorf("commit login: %w", err)
		}
	}
	s.cfg.Fault(ctx, FaultCommitted)
	s.cfg.Wake()
	out, err := s.outcome(ctx, access, f)
	out.Missing = missing
	return out, err
}

// askedFor are the scopes of all that waited behind the link when the login began, without what we added ourselves.
func askedFor(f Flow, n auth.Need) []string {
	asked := slices.DeleteFunc(slices.Clone(f.Scopes), func(scope string) bool { return scope == scopeOffline })
	return auth.Union(n.Scopes, asked)
}

func (s *Service) newGrant(f Flow, n auth.Need, got tokens) (g Grant, missing []string, err error) {
	// What the person was asked for, on behalf of all that wait behind the link.
	n.Scopes = askedFor(f, n)
	now := s.cfg.Now()
	g = Grant{
		ID: uuid.NewString(), Slot: n.Slot, Scopes: n.Scopes, Provider: f.Provider, Client: f.Client, Created: now, Updated: now,
	}
	if got.scopes != nil {
		// Providers rename, merge and leave out scopes that they do grant. So what was asked for counts as granted: if it
		// is not, the server's insufficient_scope says so, once, instead of this page asking for ever.
		missing = without(n.Scopes, append(slices.Clone(got.scopes), scopeOpenID, scopeOffline, "profile", "email"))
		g.Scopes = auth.Union(n.Scopes, got.scopes)
	}
	if len(f.ClientSecret) > 0 {
		secret, err := s.unseal(f.ClientSecret, f.ad(columnClientSecret))
		if err != nil {
			return g, nil, err
		}
		if g.ClientSecret, err = s.seal(secret, g.ad(columnClientSecret)); err != nil {
			return g, nil, err
		}
	}
	g.Account = got.identity.account
	if err := s.setTokens(&g, got.access, got.refresh, got.expires); err != nil {
		return g, nil, err
	}
	if got.identity.verified && n.Type == string(agent.AuthOpenIDConnect) {
		return g, missing, s.setIDToken(&g, got.id)
	}
	return g, missing, nil
}
