package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/vault"
)

// Vault encrypts what the store keeps. [vault.Vault] is one.
type Vault interface {
	Seal(plain auth.Secret, ad vault.AD) ([]byte, error)
	Open(cipher []byte, ad vault.AD) (auth.Secret, error)
}

// Discoverer finds providers. [discovery.Discoverer] is one.
type Discoverer interface {
	Server(ctx context.Context, server string, wwwAuthenticate []string, rules discovery.Rules) (discovery.Found, error)
	Issuer(ctx context.Context, issuer string) (auth.Provider, error)
}

// Points at which [Config.Fault] is called.
const (
	// FaultBegun: the flow is stored, the browser is not sent away yet.
	FaultBegun = "begin.stored"
	// FaultExchanging: the code is written ahead, the token request not sent.
	FaultExchanging = "callback.exchanging"
	// FaultExchanged: the provider has answered, nothing of it is stored.
	FaultExchanged = "callback.exchanged"
	// FaultCommitted: the token is stored, nobody is woken.
	FaultCommitted = "callback.committed"
	// FaultParked: tokens of another account are kept until their person has said what to do with them.
	FaultParked = "callback.parked"
	// FaultRefreshing: the refresh is ours, nothing is sent.
	FaultRefreshing = "refresh.sending"
	// FaultRefreshed: the provider has answered a refresh, nothing of it is stored.
	FaultRefreshed = "refresh.answered"
)

// Defaults of a [Config].
const (
	DefaultExchangeTimeout = 15 * time.Second
	DefaultRefreshTimeout  = 10 * time.Second
	DefaultRegisterTimeout = 5 * time.Second
)

// Config is what a [Service] works with.
type Config struct {
	Store Store
	Vault Vault
	// HTTP is the guarded client.
	HTTP     *http.Client
	Discover Discoverer
	// Secrets resolves the reference to a client secret.
	Secrets func(ctx context.Context, source agent.Source) (auth.Secret, error)
	// PublicURL is what browsers know us by.
	PublicURL *url.URL
	// ClientName is shown by providers at which we register ourselves.
	ClientName string
	// ClientMetadataURL is where providers find the [Service.MetadataDocument], which is our client id at those that take
	// it; empty means that none is told of it. [MetadataURL] has the default.
	ClientMetadataURL string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger
	// ExchangeTimeout and RefreshTimeout bound a token request; 0 means the defaults. Leases are longer.
	ExchangeTimeout time.Duration
	RefreshTimeout  time.Duration
	// RegisterTimeout bounds the registration of a client, with the wait for one that is under way: a person has pressed a
	// button and sees nothing until then. 0 means the default.
	RegisterTimeout time.Duration
	// Wake is called after messages to runs were stored; nil means that somebody polls.
	Wake func()
	// Fault is called at named points by tests; nil in production.
	Fault func(ctx context.Context, point string)
}

// Service does logins and keeps tokens fresh. It is safe for concurrent use, also by several processes on one store.
type Service struct {
	cfg Config
	// registering is held while a client is registered, so that a double click does not make two.
	registering turns
	// keys are those that ID tokens are verified with.
	keys keySets
	// fetching is held while a token of an app itself is fetched.
	fetching turns
}

// New returns a service, or an error that lists what is missing.
func New(cfg Config) (*Service, error) {
	var missing []error
	for name, absent := range map[string]bool{
		"Store": cfg.Store == nil, "Vault": cfg.Vault == nil, "HTTP with a transport": cfg.HTTP == nil || cfg.HTTP.Transport == nil, "Discover": cfg.Discover == nil,
		"Secrets": cfg.Secrets == nil, "PublicURL": cfg.PublicURL == nil, "Log": cfg.Log == nil,
	} {
		if absent {
			missing = append(missing, fmt.Errorf("oauth: config has no %s", name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	if u := cfg.PublicURL; u.Scheme != "https" && (u.Scheme != "http" || !discovery.IsLoopback(u.Hostname())) {
		return nil, fmt.Errorf("oauth: public URL %s must be https, or http on loopback", u.Redacted())
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	if cfg.Fault == nil {
		cfg.Fault = func(context.Context, string) {}
	}
	if cfg.ExchangeTimeout <= 0 {
		cfg.ExchangeTimeout = DefaultExchangeTimeout
	}
	if cfg.RefreshTimeout <= 0 {
		cfg.RefreshTimeout = DefaultRefreshTimeout
	}
	if cfg.RegisterTimeout <= 0 {
		cfg.RegisterTimeout = DefaultRegisterTimeout
	}
	return &Service{cfg: cfg}, nil
}

const callbackPath = "/oauth/callback/"

// CallbackPath is the path of the redirect URI of an issuer; see [CallbackIssuer].
func CallbackPath(issuer string) string { return callbackPath + CallbackDigest(issuer) }

func (s *Service) redirectURI(p auth.Provider) string {
	return publicAddress(s.cfg.PublicURL) + CallbackPath(CallbackIssuer(p))
}

// clientSecret resolves a pre-registered client's secret, or the private key that it signs with, or opens a registered one's.
func (s *Service) clientSecret(ctx context.Context, c auth.Client, sealed []byte, ad vault.AD) (auth.Secret, error) {
	if len(sealed) > 0 {
		secret, err := s.cfg.Vault.Open(sealed, ad)
		if err != nil {
			return auth.Secret{}, fmt.Errorf("client secret: %w", err)
		}
		return secret, nil
	}
	if c.Auth == authKey {
		return s.resolve(ctx, "private key", c.Key)
	}
	return s.resolve(ctx, "client secret", c.Secret)
}

// resolve reads what a definition refers to; nothing for an empty reference.
func (s *Service) resolve(ctx context.Context, what string, ref agent.SecretRef) (auth.Secret, error) {
	if ref == "" {
		return auth.Secret{}, nil
	}
	source, err := ref.Parse()
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%w: %s is not a reference", auth.ErrMisconfigured, what)
	}
	secret, err := s.cfg.Secrets(ctx, source)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%w: %s %s:%s: %w", auth.ErrMisconfigured, what, source.Kind, source.Name, err)
	}
	if secret.IsZero() {
		return auth.Secret{}, fmt.Errorf("%w: %s %s:%s is empty", auth.ErrMisconfigured, what, source.Kind, source.Name)
	}
	return secret, nil
}

// randomText has 256 bits.
func randomText() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// pause waits for d or the end of ctx, false for the latter.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
