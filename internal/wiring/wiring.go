package wiring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/inputs"
	"tarry/auth/keys"
	"tarry/auth/oauth"
	"tarry/auth/vault"
	"tarry/internal/safehttp"
	"tarry/store"
)

// Config is what worker and server have in common.
type Config struct {
	// DatabaseURL is a file path, a sqlite:// URL or a postgres:// URL. It may hold a password.
	DatabaseURL auth.Secret
	// DataDir holds the keyset, unless Keyset says where that is.
	DataDir string
	// Keyset is a file, or the URI of a key of a key management service, of which KMS has a client; empty means keyset.json
	// in DataDir.
	Keyset string
	KMS    vault.Clients
	// SecretsDir is where ${file:…} references lie; empty means there are none.
	SecretsDir string
	// LookupEnv resolves ${env:…} references.
	LookupEnv func(string) (string, bool)
	PublicURL *url.URL
	// ClientMetadataURL is where providers find the client metadata document; empty means below PublicURL if that is https,
	// "none" that there is none.
	ClientMetadataURL string
	// Dev allows loopback addresses for providers and MCP servers.
	Dev        bool
	AllowCIDRs []netip.Prefix
	// MaxOpenRequests is how many questions may wait for one user in one app; 0 means the store's default, less than 0 any
	// number.
	MaxOpenRequests int
	// MaxArtifacts is how many MiB of artifacts one user may keep in one app; 0 means the store's default, less than 0 any number.
	MaxArtifacts int
	Log          *slog.Logger
	// Wake is called when messages to runs were written; may be nil.
	Wake func()
	// Fault is for tests.
	Fault func(ctx context.Context, point string)
	// ExchangeTimeout bounds token requests; 0 means the default.
	ExchangeTimeout time.Duration
}

// Parts are what both processes work with.
type Parts struct {
	Store  *store.Store
	Vault  *vault.Vault
	HTTP   *safehttp.Client
	Logins *oauth.Service
	Keys   *keys.Service
	Inputs *inputs.Service
	// UserKey keeps users out of workflow ids.
	UserKey auth.Secret
	// FormKey signs the form tokens of pages.
	FormKey auth.Secret

	stop func()
}

const (
	userKeyName = "workflow-user-hmac"
	formKeyName = "form-tokens"
)

// Open opens store and vault and builds the rest. Close ends it.
func Open(ctx context.Context, c Config) (*Parts, error) {
	if err := makeDataDir(c.DataDir); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	s, err := store.Open(ctx, c.DatabaseURL.Reveal())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if c.MaxOpenRequests != 0 {
		s.LimitRequests(max(c.MaxOpenRequests, 0))
	}
	if c.MaxArtifacts != 0 {
		s.LimitArtifacts(int64(max(c.MaxArtifacts, 0)) << 20)
	}
	p, err := build(ctx, c, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return p, nil
}

// defaultDir lies beside agents, which are often under version control.
const defaultDir = ".tarry"

// makeDataDir makes a folder that nobody else reads and, where it has the default name, that no repository takes in: it
// holds the key to everybody's tokens. A folder of another name may hold more than ours.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err //nolint:wrapcheck // Open wraps
	}
	if filepath.Base(dir) != defaultDir {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = file.WriteString("*\n")
		err = errors.Join(err, file.Close())
	}
	return err
}

func build(ctx context.Context, c Config, s *store.Store) (*Parts, error) {
	v, err := openVault(ctx, c, s)
	if err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	key, err := v.NamedKey(ctx, userKeyName)
	if err != nil {
		return nil, fmt.Errorf("open user key: %w", err)
	}
	forms, err := v.NamedKey(ctx, formKeyName)
	if err != nil {
		return nil, fmt.Errorf("open form key: %w", err)
	}
	document, err := oauth.MetadataURL(c.ClientMetadataURL, c.PublicURL, c.Dev)
	if err != nil {
		return nil, fmt.Errorf("client metadata URL: %w", err)
	}
	client := safehttp.New(safehttp.Config{AllowLoopback: c.Dev, AllowCIDRs: c.AllowCIDRs, UserAgent: "tarry"})
	logins, err := oauth.New(oauth.Config{
		Store:             s,
		Vault:             v,
		HTTP:              client.HTTP(),
		Discover:          &discovery.Discoverer{HTTP: client.HTTP(), AllowLoopback: c.Dev},
		Secrets:           Secrets(c.SecretsDir, c.LookupEnv),
		PublicURL:         c.PublicURL,
		ClientName:        "Tarry",
		ClientMetadataURL: document,
		Log:               c.Log,
		Wake:              c.Wake,
		Fault:             c.Fault,
		ExchangeTimeout:   c.ExchangeTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("set up logins: %w", err)
	}
	return &Parts{
		Store: s, Vault: v, HTTP: client, Logins: logins, UserKey: auth.NewSecret(string(key)), FormKey: auth.NewSecret(string(forms)), stop: watch(c, v, s), //nolint:contextcheck // it goes on until Close
		Keys:   &keys.Service{Store: s, Vault: v, Secrets: Secrets(c.SecretsDir, c.LookupEnv), Wake: c.Wake, Log: c.Log},
		Inputs: &inputs.Service{Store: s, Vault: v, Wake: c.Wake, Log: c.Log},
	}, nil
}

// Close stops what runs in the background, and closes the store and idle connections.
func (p *Parts) Close() error {
	p.stop()
	p.HTTP.CloseIdleConnections()
	if err := p.Store.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
