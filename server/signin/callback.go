package signin

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tarry/auth"
	"tarry/server/web"
)

const (
	maxState = 512
	maxCode  = 8 << 10
	// exchangeTimeout bounds the token request and what follows. It goes on when the browser goes away: the code is spent.
	exchangeTimeout = 20 * time.Second
)

var (
	errBrowser  = errors.New("sign-in was not begun in this browser")
	errProvider = errors.New("provider's answer is not acceptable")
)

// callback ends a sign-in (OpenID Connect Core section 3.1.2.5). Nothing is asked of the provider before state and browser are
// proven, and a state is good for one answer.
func (p *people) callback(w http.ResponseWriter, r *http.Request) {
	if web.Prefetch(r) || r.Method == http.MethodHead {
		web.PageHeaders(w.Header(), false)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	answer, ok := readAnswer(r.URL.RawQuery)
	if !ok {
		p.fail(w, r, http.StatusBadRequest, "This is no answer of the sign-in provider.", nil)
		return
	}
	a, err := p.attempt(r, answer.state)
	if err != nil {
		p.fail(w, r, http.StatusForbidden, "This sign-in was not begun in this browser, or took too long. Nothing has been accepted. Begin again.", err)
		return
	}
	p.cookies.Clear(w, attemptName(a.State))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), exchangeTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	who, err := p.person(r, a, answer)
	switch {
	case errors.Is(err, auth.ErrSpent):
		p.fail(w, r, http.StatusForbidden, "This answer of the sign-in provider was used before. Begin again.", err)
		return
	case errors.Is(err, errUnavailable):
		p.fail(w, r, http.StatusServiceUnavailable, "The sign-in provider cannot be reached. Begin again in a minute.", err)
		return
	case errors.Is(err, errNotAllowed):
		if noted := p.Sessions.RefuseSignIn(auth.WithActor(ctx, UserID(who.Issuer, who.Subject))); noted != nil {
			p.log.ErrorContext(ctx, "record refused sign-in", "err", noted, "request_id", web.RequestID(ctx))
		}
		p.fail(w, r, http.StatusForbidden, "Your account may not use this server. Ask its operator, or sign out at the sign-in provider and use another account.", err)
		return
	case err != nil:
		p.fail(w, r, http.StatusForbidden, "The sign-in provider did not confirm who you are. Begin again.", err)
		return
	}
	if err := p.enter(w, r, who); err != nil {
		p.fail(w, r, http.StatusServiceUnavailable, "Sign-in is not available at the moment. Begin again in a minute.", fmt.Errorf("start session: %w", err))
		return
	}
	p.log.InfoContext(ctx, "signed in", "user", UserID(who.Issuer, who.Subject), "request_id", web.RequestID(ctx))
	target := a.Target
	if !localTarget(target) {
		target = Path
	}
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusSeeOther)
}

// authorizationAnswer is a provider's authorization response.
type authorizationAnswer struct {
	state, code, problem string
	iss                  string
	hasIss               bool
}

func readAnswer(rawQuery string) (a authorizationAnswer, ok bool) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return a, false
	}
	for name, into := range map[string]*string{"state": &a.state, "code": &a.code, "error": &a.problem, "iss": &a.iss} {
		values := query[name]
		if len(values) > 1 { // RFC 6749 section 3.1
			return a, false
		}
		if len(values) == 1 {
			*into = values[0]
		}
	}
	a.hasIss = query.Has("iss")
	return a, a.state != "" && len(a.state) <= maxState && len(a.code) <= maxCode && (a.code == "") != (a.problem == "")
}

// attempt is what this browser has begun under state.
func (p *people) attempt(r *http.Request, state string) (attempt, error) {
	name := attemptName(state)
	value := p.cookies.Value(r, name)
	if value.IsZero() {
		return attempt{}, errBrowser
	}
	sealed, err := base64.RawURLEncoding.DecodeString(value.Reveal())
	if err != nil {
		return attempt{}, errBrowser
	}
	plain, err := p.Sealer.Open(sealed, name)
	if err != nil {
		return attempt{}, fmt.Errorf("%w: %w", errBrowser, err)
	}
	var a attempt
	if json.Unmarshal([]byte(plain.Reveal()), &a) != nil || subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1 {
		return attempt{}, errBrowser
	}
	if !p.Now().Before(a.Expires) {
		return attempt{}, fmt.Errorf("%w: expired", errBrowser)
	}
	return a, nil
}

// person is whom the provider's answer is about.
func (p *people) person(r *http.Request, a attempt, answer authorizationAnswer) (auth.Person, error) {
	ctx := r.Context()
	config, err := p.client(r)
	if err != nil {
		return auth.Person{}, err
	}
	found, err := p.issuer.discover(ctx)
	if err != nil {
		return auth.Person{}, err
	}
	if answer.hasIss && answer.iss != p.Issuer || !answer.hasIss && found.more.IssSupported { // RFC 9207 section 2.4
		return auth.Person{}, fmt.Errorf("%w: iss", errProvider)
	}
	if err := p.Sessions.SpendSignIn(ctx, hash(a.State), 2*attemptLife); err != nil {
		return auth.Person{}, fmt.Errorf("spend state: %w", err)
	}
	if answer.problem != "" {
		return auth.Person{}, fmt.Errorf("%w: error %s", errProvider, knownProblem(answer.problem))
	}
	tokens, err := config.Exchange(oidc.ClientContext(ctx, p.issuer.http), answer.code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return auth.Person{}, exchangeError(err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok || raw == "" {
		return auth.Person{}, fmt.Errorf("%w: no ID token", errProvider)
	}
	return p.verified(ctx, found, raw, a.Nonce)
}

// verified checks an ID token (OpenID Connect Core section 3.1.3.7). Beside errNotAllowed it returns who is not allowed.
func (p *people) verified(ctx context.Context, found *metadata, raw, nonce string) (auth.Person, error) {
	token, err := found.Verifier(&oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: Algorithms(), Now: p.Now}).Verify(ctx, raw)
	if err != nil {
		return auth.Person{}, fmt.Errorf("%w: ID token: %s", errProvider, brief(err))
	}
	all := map[string]any{}
	var more struct {
		Azp      string `json:"azp"`
		Name     string `json:"name"`
		Username string `json:"preferred_username"`
		Email    string `json:"email"`
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return auth.Person{}, fmt.Errorf("%w: nonce", errProvider)
	case token.Subject == "" || len(token.Subject) > maxName:
		return auth.Person{}, fmt.Errorf("%w: sub", errProvider)
	case token.Claims(&more) != nil || token.Claims(&all) != nil:
		return auth.Person{}, fmt.Errorf("%w: claims", errProvider)
	case more.Azp != "" && more.Azp != p.ClientID:
		return auth.Person{}, fmt.Errorf("%w: azp", errProvider)
	}
	who := auth.Person{Issuer: p.Issuer, Subject: token.Subject, Name: firstOf(more.Name, more.Username, more.Email, token.Subject)}
	if !p.Allow.permits(all) {
		return who, errNotAllowed
	}
	return who, nil
}

// exchangeError keeps what a token endpoint says, which may repeat what it was sent, out of errors.
func exchangeError(err error) error {
	var said *oauth2.RetrieveError
	if errors.As(err, &said) {
		status := 0
		if said.Response != nil {
			status = said.Response.StatusCode
		}
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return fmt.Errorf("%w: token endpoint answered %d", errUnavailable, status)
		}
		return fmt.Errorf("%w: token endpoint answered %d %s", errProvider, status, knownProblem(said.ErrorCode))
	}
	return fmt.Errorf("%w: token request", errUnavailable)
}

// knownProblem maps an error to the codes of RFC 6749 sections 4.1.2.1 and 5.2 and OpenID Connect Core section 3.1.2.6.
func knownProblem(code string) string {
	known := []string{
		"invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope", "server_error",
		"temporarily_unavailable", "interaction_required", "login_required", "account_selection_required", "consent_required",
		"invalid_client", "invalid_grant", "unsupported_grant_type",
	}
	if slices.Contains(known, code) {
		return code
	}
	return "other"
}
