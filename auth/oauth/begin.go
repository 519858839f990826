package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

const (
	flowLife = 15 * time.Minute
	// liveFlows is how many logins of one request may be open at once: enough for a few tabs.
	liveFlows = 8

	scopeOffline = "offline_access"
	scopeOpenID  = "openid"
)

// Started is a login that has begun. The browser gets the cookie and is sent to the redirect, which holds the state: it
// belongs into a Location header and nowhere else.
type Started struct {
	RedirectURL string
	CookieName  string
	Cookie      auth.Secret
	Expires     time.Time
	// Device says that there is nowhere to send the browser: the request's page shows a code.
	Device bool
	// Correlator is that of all requests behind the link.
	Correlator string
}

// Begin begins a login of an open request, with everything fresh, as often as the person likes. shown is what the page said
// ([Page.Shown]); when it is empty or unknown, all that wait by now count as shown. Errors for the
// page: [ErrNotFound], [ErrClosed], [ErrBusy], [ErrMoved], [ErrTooMany], [auth.ErrUnavailable], [auth.ErrMisconfigured].
func (s *Service) Begin(ctx context.Context, access auth.Access, requestID, shown string) (*Started, error) {
	r, err := s.front(ctx, access, requestID)
	if err != nil {
		return nil, err
	}
	if err := s.lookAgain(ctx, r); err != nil {
		return nil, err
	}
	if r.Need.Device {
		return s.beginDevice(ctx, r, shown)
	}
	endpoint, err := authorizationEndpoint(r.Need.Provider)
	if err != nil {
		return nil, err
	}
	f, secrets, err := s.newFlow(ctx, r)
	if err != nil {
		return nil, err
	}
	f.Shown = shown
	switch err := s.cfg.Store.BeginFlow(ctx, f, liveFlows); {
	case errors.Is(err, ErrConflict):
		if _, err := s.front(ctx, access, requestID); err != nil {
			return nil, err
		}
		return nil, ErrBusy
	case err != nil:
		return nil, fmt.Errorf("begin login: %w", err)
	}
	if len(f.Relaxed) > 0 {
		s.cfg.Log.InfoContext(ctx, "login begun with rules that its definition relaxes", "request_id", r.ID, "provider", endpoint.Host, "relaxed", f.Relaxed)
	}
	s.cfg.Fault(ctx, FaultBegun)
	return &Started{
		RedirectURL: authorizationURL(endpoint, f, secrets),
		CookieName:  s.cookieName(f.StateHash), Cookie: secrets.cookie, Expires: f.Expires, Correlator: r.Correlator,
	}, nil
}

// front returns the request that a link is answered by at this moment, with the scopes of all that wait behind it.
func (s *Service) front(ctx context.Context, access auth.Access, requestID string) (auth.Request, error) {
	behind, err := s.cfg.Store.Behind(ctx, requestID, access)
	if err != nil {
		return auth.Request{}, fmt.Errorf("begin login: %w", err)
	}
	return s.frontOf(behind)
}

func (s *Service) frontOf(behind []auth.Request) (auth.Request, error) {
	var r auth.Request
	var first error
	for _, o := range behind {
		err := errors.Join(s.waits(o), sound(o))
		switch {
		case errors.Is(err, ErrBusy):
			return o, err
		case err != nil:
			if first == nil {
				first = err
			}
		case r.ID == "":
			r = o
		default:
			r.Need.Scopes = auth.Union(r.Need.Scopes, o.Need.Scopes)
		}
	}
	if r.ID == "" {
		return behind[0], first
	}
	return r, nil
}

func (s *Service) waits(r auth.Request) error {
	switch {
	case r.Status == auth.StatusExchanging:
		return ErrBusy
	case !r.Status.Open():
		return fmt.Errorf("%w: %s", ErrClosed, r.Status)
	case !r.Deadline.IsZero() && !s.cfg.Now().Before(r.Deadline):
		return fmt.Errorf("%w: %s", ErrClosed, auth.StatusExpired)
	}
	return nil
}

// sound refuses a row that somebody changed: the person who is asked would give the token to another.
func sound(r auth.Request) error {
	if !r.Need.Login() || r.Need.Typed != nil {
		return misconfigured("request %s asks for no login", r.ID)
	}
	if r.Need.Slot.Owner != r.Owner {
		return misconfigured("request %s asks one person for the login of another", r.ID)
	}
	return nil
}

// newFlow makes a flow and its secrets.
func (s *Service) newFlow(ctx context.Context, r auth.Request) (Flow, flowSecrets, error) {
	n, now := r.Need, s.cfg.Now()
	redirectURI := s.redirectURI(n.Provider)
	client, clientSecret, err := s.client(ctx, r, redirectURI)
	if err != nil {
		return Flow{}, flowSecrets{}, err
	}
	scopes := flowScopes(n)
	secrets, err := newSecrets(n.Type == string(agent.AuthOpenIDConnect) || slices.Contains(scopes, scopeOpenID))
	if err != nil {
		return Flow{}, flowSecrets{}, err
	}
	f := Flow{
		StateHash: digest(secrets.state.Reveal()), CookieHash: digest(secrets.cookie.Reveal()), Request: r.ID, Owner: r.Owner,
		Status: FlowLive, Provider: n.Provider, Client: client, RedirectURI: redirectURI, Scopes: scopes,
		Resource: resourceParameter(n.Slot.Resource), Relaxed: n.Relaxed, Created: now, Expires: now.Add(flowLife),
	}
	for _, column := range []struct {
		name   string
		secret auth.Secret
		cipher *[]byte
	}{
		{columnVerifier, secrets.verifier, &f.Verifier},
		{columnNonce, secrets.nonce, &f.Nonce},
		{columnClientSecret, clientSecret, &f.ClientSecret},
	} {
		if *column.cipher, err = s.seal(column.secret, f.ad(column.name)); err != nil {
			return Flow{}, flowSecrets{}, err
		}
	}
	return f, secrets, nil
}

// flowSecrets are what a login is proven by.
type flowSecrets struct{ state, verifier, nonce, cookie auth.Secret }

func newSecrets(openID bool) (flowSecrets, error) {
	out := flowSecrets{verifier: auth.NewSecret(oauth2.GenerateVerifier())}
	for _, to := range []*auth.Secret{&out.state, &out.cookie, &out.nonce} {
		text, err := randomText()
		if err != nil {
			return flowSecrets{}, err
		}
		*to = auth.NewSecret(text)
	}
	if !openID {
		out.nonce = auth.Secret{}
	}
	return out, nil
}

// flowScopes adds offline_access where the server's metadata offers it: some give refresh tokens only then.
func flowScopes(n auth.Need) []string {
	if n.IDToken {
		n.Scopes = auth.Union(n.Scopes, []string{scopeOpenID})
	}
	if n.Provider.Discovered && len(n.Scopes) > 0 && slices.Contains(n.Provider.Scopes, scopeOffline) {
		return auth.Union(n.Scopes, []string{scopeOffline})
	}
	return n.Scopes
}

func authorizationEndpoint(p auth.Provider) (*url.URL, error) {
	u, err := url.Parse(p.AuthorizationEndpoint)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !discovery.IsLoopback(u.Hostname())) {
		return nil, misconfigured("the authorization endpoint of %s is not an https URL", discovery.Host(p.Issuer))
	}
	return u, nil
}

// authorizationURL is RFC 6749 section 4.1.1 with PKCE and resource. What a definition adds never replaces ours.
func authorizationURL(endpoint *url.URL, f Flow, secrets flowSecrets) string {
	q := endpoint.Query()
	for name, value := range f.Client.Params {
		q.Set(name, value)
	}
	for _, ours := range []string{"request", "request_uri", "response_mode", "scope", "nonce", "resource"} {
		q.Del(ours)
	}
	q.Set("response_type", "code")
	q.Set("client_id", f.Client.ID)
	q.Set("redirect_uri", f.RedirectURI)
	q.Set("state", secrets.state.Reveal())
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(secrets.verifier.Reveal()))
	q.Set("code_challenge_method", "S256")
	if len(f.Scopes) > 0 {
		q.Set("scope", strings.Join(f.Scopes, " "))
	}
	if !secrets.nonce.IsZero() {
		q.Set("nonce", secrets.nonce.Reveal())
	}
	if f.Resource != "" {
		q.Set("resource", f.Resource)
	}
	// OpenID Connect Core section 11: offline_access is ignored without.
	if slices.Contains(f.Scopes, scopeOffline) && !q.Has("prompt") {
		q.Set("prompt", "consent")
	}
	u := *endpoint
	u.RawQuery, u.Fragment, u.RawFragment = q.Encode(), "", ""
	return u.String()
}

// cookieName is one name per login, so that two tabs do not overwrite each other's. Browsers take __Host- names over
// https only, for the whole host and no other.
func (s *Service) cookieName(stateHash string) string {
	name := "tarry-login-" + stateHash[:16]
	if s.cfg.PublicURL.Scheme == "https" {
		return "__Host-" + name
	}
	return name
}
