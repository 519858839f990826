package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tarry/auth"
	"tarry/auth/discovery"
)

// client returns the client that a login uses and, for a dynamic one, its secret.
func (s *Service) client(ctx context.Context, request auth.Request, redirectURI string) (auth.Client, auth.Secret, error) {
	n := request.Need
	switch n.Slot.Client {
	case auth.ClientDynamic:
	case auth.ClientMetadata:
		c, err := s.documentClient()
		c.Params = n.Client.Params
		return c, auth.Secret{}, err
	default:
		// Found out now, not after the person has logged in.
		_, err := s.clientSecret(ctx, n.Client, nil, Flow{}.ad(columnClientSecret))
		return n.Client, auth.Secret{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RegisterTimeout)
	defer cancel()
	release, err := s.registering.take(ctx, n.Provider.Issuer+" "+redirectURI)
	if err != nil {
		return auth.Client{}, auth.Secret{}, fmt.Errorf("%w: waited for another registration at %s: %w", auth.ErrUnavailable, discovery.Host(n.Provider.Issuer), err)
	}
	defer release()
	r, secret, err := s.registration(ctx, request.ID, n.Provider, redirectURI)
	switch {
	case err != nil && ctx.Err() != nil: // whatever failed of it, the time was over
		return auth.Client{}, auth.Secret{}, fmt.Errorf("%w: %w", auth.ErrUnavailable, err)
	case err != nil:
		return auth.Client{}, auth.Secret{}, err
	}
	return auth.Client{ID: r.ClientID, Auth: r.Auth, Params: n.Client.Params}, secret, nil
}

// registration finds our client at a provider or makes one. One that has run out, or whose secret was made for another
// token endpoint, or with which the logins of this request lead nowhere, is replaced.
func (s *Service) registration(ctx context.Context, requestID string, p auth.Provider, redirectURI string) (Registration, auth.Secret, error) {
	r, err := s.cfg.Store.Registration(ctx, p.Issuer, redirectURI)
	switch {
	case err == nil:
		secret, err := s.unseal(r.Secret, r.ad(p.TokenEndpoint))
		if err == nil && (r.Expires.IsZero() || s.cfg.Now().Before(r.Expires)) {
			lost, err := s.lost(ctx, requestID, r.ClientID)
			if err != nil || !lost {
				return r, secret, err
			}
			s.cfg.Log.WarnContext(ctx, "client registered anew: logins with the old one came to nothing", "request_id", requestID,
				"provider", discovery.Host(p.Issuer), "client_id", r.ClientID)
		}
		if err := s.cfg.Store.Unregister(ctx, p.Issuer, redirectURI, r.ClientID); err != nil {
			return r, secret, fmt.Errorf("unregister client: %w", err)
		}
	case !errors.Is(err, ErrNotFound):
		return r, auth.Secret{}, fmt.Errorf("find registration: %w", err)
	}
	fresh, secret, err := s.register(ctx, p, redirectURI)
	if err != nil {
		return r, auth.Secret{}, err
	}
	fresh.TokenEndpoint = p.TokenEndpoint
	if fresh.Secret, err = s.seal(secret, fresh.ad(p.TokenEndpoint)); err != nil {
		return r, auth.Secret{}, err
	}
	stored, err := s.cfg.Store.Register(ctx, fresh)
	if err != nil {
		return r, auth.Secret{}, fmt.Errorf("store registration: %w", err)
	}
	// Another process may have been faster; then its client is the one.
	secret, err = s.unseal(stored.Secret, stored.ad(p.TokenEndpoint))
	return stored, secret, err
}

const (
	// unanswered logins of one request with one client say that the provider has forgotten the client: it shows a page of
	// its own then and sends nobody back (RFC 6749 section 4.1.2.1).
	unanswered = 2
	// mayAnswer is how young a login is of which nothing can be said: clicks in a row are not failures in a row.
	mayAnswer = 15 * time.Second
	// registerAgain is how often a request may replace a client for that reason: the person may just not like to log in.
	registerAgain = time.Hour
)

// lost says whether the client's logins of a request lead nowhere and another registration may help.
func (s *Service) lost(ctx context.Context, requestID, clientID string) (bool, error) {
	flows, err := s.cfg.Store.Flows(ctx, requestID, 4*liveFlows)
	if err != nil {
		return false, fmt.Errorf("list logins: %w", err)
	}
	n := 0
	for _, f := range flows {
		age := s.cfg.Now().Sub(f.Created)
		switch {
		case f.Client.ID != clientID && age < registerAgain:
			return false, nil // replaced not long ago
		case f.Client.ID == clientID && f.Status == FlowLive && age >= mayAnswer:
			n++
		}
	}
	return n >= unanswered, nil
}

// register is RFC 7591. A provider without refresh tokens may refuse a client that would take them, and then gets one that
// does not.
func (s *Service) register(ctx context.Context, p auth.Provider, redirectURI string) (Registration, auth.Secret, error) {
	status, answer, err := s.requestClient(ctx, p, redirectURI, "authorization_code", "refresh_token")
	if err == nil && refusesClient(answer) {
		status, answer, err = s.requestClient(ctx, p, redirectURI, "authorization_code")
	}
	if err != nil {
		return Registration{}, auth.Secret{}, err
	}
	return s.parseRegistration(status, answer, p, redirectURI)
}

func (s *Service) requestClient(ctx context.Context, p auth.Provider, redirectURI string, grants ...string) (status int, answer []byte, err error) {
	host := discovery.Host(p.RegistrationEndpoint)
	body, err := json.Marshal(map[string]any{
		"client_name":                s.cfg.ClientName,
		"redirect_uris":              []string{redirectURI},
		"grant_types":                grants,
		"response_types":             []string{"code"},
		"application_type":           applicationType(redirectURI),
		"token_endpoint_auth_method": registrationAuth(p.AuthMethods),
	})
	if err != nil {
		return 0, nil, fmt.Errorf("encode registration: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil || p.RegistrationEndpoint == "" {
		return 0, nil, misconfigured("%s has no registration endpoint", discovery.Host(p.Issuer))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("register client: %w", discovery.Unreachable(ctx, host, err))
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, fmt.Errorf("register client: %w", discovery.Unreachable(ctx, host, err))
	}
	return resp.StatusCode, answer, nil
}

// refusesClient tells a refusal of what the client would be (RFC 7591 section 3.2.2) from every other answer.
func refusesClient(answer []byte) bool {
	var a struct {
		Error string `json:"error"`
	}
	return json.Unmarshal(answer, &a) == nil && a.Error == "invalid_client_metadata"
}

func (s *Service) parseRegistration(status int, body []byte, p auth.Provider, redirectURI string) (Registration, auth.Secret, error) {
	host := discovery.Host(p.RegistrationEndpoint)
	var a struct {
		ClientID string  `json:"client_id"`
		Secret   string  `json:"client_secret"`
		Expires  float64 `json:"client_secret_expires_at"`
		Auth     string  `json:"token_endpoint_auth_method"`
		Error    string  `json:"error"`
	}
	err := json.Unmarshal(body, &a)
	switch {
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return Registration{}, auth.Secret{}, fmt.Errorf("%w: registration at %s: HTTP %d", auth.ErrUnavailable, host, status)
	case err == nil && a.Error != "":
		return Registration{}, auth.Secret{}, misconfigured("%s does not register this client (%s): %s", host, cleanCode(a.Error), byHand(redirectURI))
	case err != nil || status != http.StatusCreated && status != http.StatusOK || a.ClientID == "" || len(a.ClientID) > 1024:
		return Registration{}, auth.Secret{}, misconfigured("registration at %s: HTTP %d without a client: %s", host, status, byHand(redirectURI))
	}
	r := Registration{Issuer: p.Issuer, RedirectURI: redirectURI, ClientID: a.ClientID, Auth: a.Auth, Created: s.cfg.Now()}
	switch {
	case a.Secret == "":
		r.Auth = authNone
	case r.Auth == "":
		r.Auth = registrationAuth(p.AuthMethods)
	}
	if a.Expires > 0 && a.Expires < 1<<40 {
		r.Expires = time.Unix(int64(a.Expires), 0)
	}
	return r, auth.NewSecret(a.Secret), nil
}

// byHand is the mend where a provider does not register us.
func byHand(redirectURI string) string {
	return "register it by hand with the redirect URI " + redirectURI + " and put its client_id into the definition"
}

// applicationType: providers take plain http on loopback from native clients only (OpenID Connect Registration section 2).
func applicationType(redirectURI string) string {
	if u, err := url.Parse(redirectURI); err == nil && discovery.IsLoopback(u.Hostname()) {
		return "native"
	}
	return "web"
}

// registrationAuth prefers a client with a secret: a stolen refresh token is useless without it.
func registrationAuth(methods []string) string {
	for _, m := range []string{authBasic, authPost, authNone} {
		if slices.Contains(methods, m) {
			return m
		}
	}
	return authBasic // the default of RFC 8414 section 2
}
