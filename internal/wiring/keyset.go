package wiring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tarry/auth/vault"
	"tarry/store"
)

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
