package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tarry/auth/vault"
	"tarry/store"
)

// OpenVault opens store and vault alone, for who changes keys. Nobody learns that this process has the keyset.
func OpenVault(ctx context.Context, c Config) (*store.Store, *vault.Vault, error) {
	s, err := store.Open(ctx, c.DatabaseURL.Reveal())
	if err != nil {
		return nil, nil, fmt.Errorf("open store: %w", err)
	}
	v, err := openVault(ctx, c, s)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open vault: %w", err), s.Close())
	}
	return s, v, nil
}

// openVault finds the keyset: a file, or the database's own, encrypted with the key that a URI names.
func openVault(ctx context.Context, c Config, s *store.Store) (*vault.Vault, error) {
	cfg := vault.Config{KeysetFile: c.Keyset, Checks: s}
	switch {
	case strings.Contains(c.Keyset, "://"):
		key, err := c.KMS.Key(ctx, c.Keyset)
		if err != nil {
			return nil, err //nolint:wrapcheck // build wraps
		}
		cfg.KMS = &vault.KMS{URI: c.Keyset, Key: key, Store: s}
	case c.Keyset == "":
		cfg.KeysetFile = filepath.Join(c.DataDir, "keyset.json")
	}
	return vault.Open(ctx, cfg) //nolint:wrapcheck // build wraps
}

// watch keeps up with changes of the keyset until stop is called.
func watch(c Config, v *vault.Vault, s *store.Store) (stop func()) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := fmt.Sprintf("%s on %s, process %d", filepath.Base(os.Args[0]), host, os.Getpid())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.Watch(ctx, s, name, c.Log)
	}()
	return func() {
		cancel()
		<-done
	}
}
