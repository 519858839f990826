package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// Client authentication methods (RFC 7591 section 2).
const (
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
	authNone  = "none"
	authKey   = agent.ClientAuthPrivateKey
)

const (
	maxAnswer   = 1 << 20
	maxLifetime = 10 * 365 * 24 * time.Hour
)

// tokens is a successful answer of a token endpoint.
type tokens struct {
	access, refresh, id auth.Secret
	identity            identity
	// scopes is nil when the answer names none, which means those that were asked for (RFC 6749 section 5.1).
	scopes  []string
	expires time.Time
}

// requestTokens sends one token request, with one way of client authentication: a second try with another would spend
// the code twice. Errors: [*ProviderError], [auth.ErrUnavailable] (nothing is known, also for answers that make no sense),
// [auth.ErrMisconfigured].
func (s *Service) requestTokens(ctx context.Context, p auth.Provider, c auth.Client, secret auth.Secret, form url.Values) (tokens, error) {
	host := discovery.Host(p.TokenEndpoint)
	start := s.cfg.Now()
	resp, err := s.post(ctx, p, c, secret, p.TokenEndpoint, form)
	if err != nil {
		return tokens{}, err
	}
	return parseTokens(resp.status, resp.contentType, resp.body, start, host)
}

// reply is what an endpoint of a provider answered, read to its end.
type reply struct {
	status      int
	contentType string
	body        []byte
}

// post sends a form to an endpoint of a provider, with the client's authentication added to it.
func (s *Service) post(ctx context.Context, p auth.Provider, c auth.Client, secret auth.Secret, endpoint string, form url.Values) (reply, error) {
	host := discovery.Host(endpoint)
	if err := authenticate(p, c, secret, endpoint, form, s.cfg.Now()); err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return reply{}, misconfigured("an endpoint on %s is not a URL", host)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json") // GitHub answers with a form otherwise
	if clientAuth(c, secret) == authBasic {
		// Both parts are form-encoded first (RFC 6749 section 2.3.1).
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret.Reveal()))
	}
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return reply{}, unreachable(ctx, host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return reply{}, unreachable(ctx, host, err)
	}
	if len(body) > maxAnswer {
		return reply{}, fmt.Errorf("%w: answer of %s is too large", auth.ErrUnavailable, host)
	}
	return reply{resp.StatusCode, resp.Header.Get("Content-Type"), body}, nil
}

func unreachable(ctx context.Context, host string, err error) error {
	return fmt.Errorf("token request: %w", discovery.Unreachable(ctx, host, err))
}

// clientAuth is the client's method; by default basic with a secret and none without.
func clientAuth(c auth.Client, secret auth.Secret) string {
	switch {
	case c.Auth != "":
		return c.Auth
	case secret.IsZero():
		return authNone
	}
	return authBasic
}

func authenticate(p auth.Provider, c auth.Client, secret auth.Secret, endpoint string, form url.Values, now time.Time) error {
	method := clientAuth(c, secret)
	switch method {
	case authBasic, authPost:
		if secret.IsZero() {
			return misconfigured("client %q authenticates with %s and has no secret", c.ID, method)
		}
	case authNone:
	case authKey:
		if secret.IsZero() {
			return misconfigured("client %q authenticates with %s and has no private key", c.ID, method)
		}
		if err := assert(p, c, secret, endpoint, form, now); err != nil {
			return err
		}
	default:
		return misconfigured("client authentication method is not supported")
	}
	if method != authBasic {
		form.Set("client_id", c.ID)
	}
	if method == authPost {
		form.Set("client_secret", secret.Reveal())
	}
	return nil
}

func parseTokens(status int, contentType string, body []byte, start time.Time, host string) (tokens, error) {
	if status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError {
		return tokens{}, fmt.Errorf("%w: token endpoint of %s: HTTP %d", auth.ErrUnavailable, host, status)
	}
	fields, err := tokenFields(contentType, body)
	if err == nil && fields["error"] != "" {
		// Some send errors with HTTP 200.
		switch code := cleanCode(fields["error"]); code {
		case "slow_down":
			return tokens{}, fmt.Errorf("%w: %s: %w", auth.ErrUnavailable, host, errSlowDown)
		case "temporarily_unavailable", "server_error":
			return tokens{}, fmt.Errorf("%w: %s answered %s", auth.ErrUnavailable, host, code)
		default:
			return tokens{}, &ProviderError{Code: code}
		}
	}
	if err != nil || status < 200 || status > 299 || fields["access_token"] == "" {
		return tokens{}, fmt.Errorf("%w: token endpoint of %s: HTTP %d without a usable answer", auth.ErrUnavailable, host, status)
	}
	if kind := fields["token_type"]; kind != "" && !strings.EqualFold(kind, "bearer") {
		return tokens{}, misconfigured("%s issues tokens of a type that is not bearer", host)
	}
	out := tokens{
		access:  auth.NewSecret(fields["access_token"]),
		refresh: auth.NewSecret(fields["refresh_token"]),
		id:      auth.NewSecret(fields["id_token"]),
		// GitHub puts commas between scopes.
		scopes: discovery.Scopes(strings.ReplaceAll(fields["scope"], ",", " ")),
	}
	if seconds, err := strconv.ParseFloat(fields["expires_in"], 64); err == nil && seconds > 0 {
		out.expires = start.Add(time.Duration(min(seconds, maxLifetime.Seconds()) * float64(time.Second)))
	}
	return out, nil
}

// errSlowDown: a provider wants to be asked less often (RFC 8628 section 3.5).
var errSlowDown = errors.New("oauth: asked too often")

var errNoFields = errors.New("oauth: answer is neither JSON nor a form")

// tokenFields reads an answer in JSON or, as some old providers do, as a form.
func tokenFields(contentType string, body []byte) (map[string]string, error) {
	out := map[string]string{}
	text := strings.TrimSpace(string(body))
	kind, _, _ := mime.ParseMediaType(contentType) // what cannot be read is told from the body
	if kind == "application/x-www-form-urlencoded" || kind == "text/plain" && !strings.HasPrefix(text, "{") {
		values, err := url.ParseQuery(text)
		if err != nil {
			return nil, errNoFields
		}
		for name := range values {
			out[name] = values.Get(name)
		}
		return out, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var raw map[string]any
	if err := decoder.Decode(&raw); err != nil {
		return nil, errNoFields
	}
	for name, value := range raw {
		switch v := value.(type) {
		case string:
			out[name] = v
		case json.Number:
			out[name] = v.String()
		case []any: // scope as a list
			var parts []string
			for _, part := range v {
				if s, ok := part.(string); ok {
					parts = append(parts, s)
				}
			}
			out[name] = strings.Join(parts, " ")
		}
	}
	return out, nil
}

// chooseAuth picks how a client with a secret authenticates at a discovered provider; RFC 8414 section 2 has basic as
// the default.
func chooseAuth(methods []string) (string, error) {
	for _, m := range []string{authBasic, authPost} {
		if len(methods) == 0 || slices.Contains(methods, m) {
			return m, nil
		}
	}
	return "", misconfigured("the provider takes no client secret; its token_endpoint_auth_methods_supported are not supported")
}
