package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

const (
	// authServiceAccount marks a client that is a Google service account.
	authServiceAccount = "service_account"
	googleIssuer       = "https://accounts.google.com"
)

// serviceAccountClient is how a service account is known before its key is read: by the reference to it. An ID token for an
// audience is a credential of its own.
func serviceAccountClient(a agent.Auth) auth.Client {
	return auth.Client{Auth: authServiceAccount, Key: a.ServiceAccount, Audience: a.Audience}
}

func serviceAccountSource(a agent.Auth) string {
	source := auth.ClientOwn + authServiceAccount + " " + string(a.ServiceAccount)
	if a.Audience != "" {
		source += " for " + a.Audience
	}
	return source
}

// requestServiceAccount is RFC 7523 section 2.1 as Google has it: an assertion, signed with the account's key, for an access
// token, or for an ID token with target_audience. The address that it goes to stands in the key's file, so the guarded client
// decides whether it may.
func (s *Service) requestServiceAccount(ctx context.Context, n auth.Need, scrub *auth.Scrubber) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RefreshTimeout)
	defer cancel()
	key, err := s.resolve(ctx, "service account", n.Client.Key)
	if err != nil {
		return Grant{}, err
	}
	cfg, err := google.JWTConfigFromJSON([]byte(key.Reveal()), n.Scopes...)
	if err != nil || cfg.Email == "" || len(cfg.PrivateKey) == 0 {
		return Grant{}, misconfigured("the service account of the definition is not the JSON of a key with type service_account")
	}
	if _, err := parsePrivateKey(auth.NewSecret(string(cfg.PrivateKey))); err != nil {
		return Grant{}, misconfigured("the private_key of service account %q %s", cfg.Email, err)
	}
	if n.Client.Audience != "" {
		cfg.PrivateClaims, cfg.UseIDToken = map[string]any{"target_audience": n.Client.Audience}, true
	}
	scrub.Add(auth.NewSecret(string(cfg.PrivateKey)))
	guarded := *s.cfg.HTTP
	sent := &bounded{ctx: ctx, next: s.cfg.HTTP.Transport}
	guarded.Transport = sent
	start := s.cfg.Now()
	token, err := cfg.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &guarded)).Token()
	if err != nil {
		return Grant{}, refusedAccount(ctx, cfg.Email, cfg.TokenURL, errors.Join(err, sent.err))
	}
	access := auth.NewSecret(token.AccessToken)
	scrub.Add(access)
	if access.IsZero() {
		return Grant{}, misconfigured("%s gives service account %q no token", discovery.Host(cfg.TokenURL), cfg.Email)
	}
	g := Grant{
		ID: uuid.NewString(), Slot: n.Slot, Scopes: n.Scopes, Provider: n.Provider, Client: n.Client, Created: start, Updated: start,
	}
	g.Provider.TokenEndpoint, g.Client.ID = cfg.TokenURL, cfg.Email
	return g, s.setTokens(&g, access, auth.Secret{}, token.Expiry)
}

// refusedAccount keeps what Google's library quotes of the answer, and the address, out of the error.
func refusedAccount(ctx context.Context, account, endpoint string, cause error) error {
	host := discovery.Host(endpoint)
	var refused *oauth2.RetrieveError
	if !errors.As(cause, &refused) {
		return unreachable(ctx, host, cause)
	}
	if code := refused.Response.StatusCode; code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return unreachable(ctx, host, nil)
	}
	fields, err := tokenFields(refused.Response.Header.Get("Content-Type"), refused.Body)
	if err != nil {
		fields = nil
	}
	return misconfigured("%s gives service account %q no token (%s): see that its key is not disabled, and that it may have the scopes",
		host, account, cleanCode(fields["error"]))
}

// bounded gives the one request a context, which the library makes without, and remembers why it failed, which the library
// prints.
type bounded struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one token request
	next http.RoundTripper
	err  error
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	var resp *http.Response
	resp, b.err = b.next.RoundTrip(r.WithContext(b.ctx))
	return resp, b.err
}

// sendsIDToken says whether the tool sends the ID token of a login.
func sendsIDToken(a agent.Auth) bool { return a.UseIDToken && a.Type == agent.AuthOpenIDConnect }
