package vault_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tink-crypto/tink-go/v2/testing/fakekms"
	"github.com/tink-crypto/tink-go/v2/tink"

	"tarry/auth"
	"tarry/auth/vault"
)

// Swap makes rows a SwapStore.
func (r *rows) Swap(_ context.Context, name string, old, new []byte) (bool, error) { //nolint:revive // as in the interface
	r.mu.Lock()
	defer r.mu.Unlock()
	if !bytes.Equal(r.rows[name], old) {
		return false, nil
	}
	r.rows[name] = new
	return true, nil
}

var clients = vault.Clients{"fake-kms": func(_ context.Context, uri string) (tink.AEADWithContext, error) {
	return fakekms.NewAEADWithContext(uri)
}}

func fakeKey(t *testing.T) string {
	t.Helper()
	uri, err := fakekms.NewKeyURI()
	require.NoError(t, err)
	return uri
}

func openKMS(ctx context.Context, uri string, checks *rows) (*vault.Vault, error) {
	key, err := clients.Key(ctx, uri)
	if err != nil {
		return nil, err
	}
	return vault.Open(ctx, vault.Config{KMS: &vault.KMS{URI: uri, Key: key, Store: checks}, Checks: checks})
}

func TestKeysetUnderAKey(t *testing.T) {
	t.Parallel()
	uri, checks, ad := fakeKey(t), newRows(), vault.AD{Row: "r"}
	var wait sync.WaitGroup
	vaults := make([]*vault.Vault, 8)
	for i := range vaults {
		wait.Go(func() {
			v, err := openKMS(context.Background(), uri, checks)
			if err == nil {
				vaults[i] = v
			}
		})
	}
	wait.Wait()
	require.NotNil(t, vaults[0])
	sealed, err := vaults[0].Seal(auth.NewSecret("x"), ad)
	require.NoError(t, err)
	for _, v := range vaults {
		require.NotNil(t, v)
		got, err := v.Open(sealed, ad)
		require.NoError(t, err)
		require.Equal(t, "x", got.Reveal(), "many processes made one keyset")
	}
	require.NotContains(t, string(checks.rows["vault-wrapped-keyset"]), "AesGcmKey")

	t.Run("another key", func(t *testing.T) {
		t.Parallel()
		_, err := openKMS(t.Context(), fakeKey(t), checks)
		require.ErrorIs(t, err, vault.ErrKMS)
		require.ErrorContains(t, err, "was encrypted with "+uri)
	})
	t.Run("no such service", func(t *testing.T) {
		t.Parallel()
		_, err := clients.Key(t.Context(), "other-kms://x")
		require.ErrorIs(t, err, vault.ErrKMS)
		require.ErrorContains(t, err, "other-kms://x")
		require.ErrorContains(t, err, "fake-kms")
	})
	t.Run("malformed", func(t *testing.T) {
		t.Parallel()
		_, err := clients.Key(t.Context(), "fake-kms://!")
		require.ErrorIs(t, err, vault.ErrKMS)
	})
}

// downKey is a service that does not answer.
type downKey struct{}

var errDown = errors.New("connection refused")

func (downKey) EncryptWithContext(context.Context, []byte, []byte) ([]byte, error) {
	return nil, errDown
}

func (downKey) DecryptWithContext(context.Context, []byte, []byte) ([]byte, error) {
	return nil, errDown
}

func TestServiceIsDown(t *testing.T) {
	t.Parallel()
	uri, checks := fakeKey(t), newRows()
	k := &vault.KMS{URI: uri, Key: downKey{}, Store: checks}
	_, err := vault.Open(t.Context(), vault.Config{KMS: k, Checks: checks})
	require.ErrorIs(t, err, errDown)
	require.ErrorContains(t, err, "encrypt the keyset with "+uri)
	require.Empty(t, checks.rows)

	v, err := openKMS(t.Context(), uri, checks)
	require.NoError(t, err)
	_, err = vault.Open(t.Context(), vault.Config{KMS: k, Checks: checks})
	require.ErrorIs(t, err, errDown)
	require.ErrorContains(t, err, "see that the service can be reached")
	require.NoError(t, v.Look(t.Context()), "who runs asks the service only when the keyset has changed")
}

// A keyset moves from a file to the database, and processes with either go on together.
func TestKeysetMoves(t *testing.T) {
	t.Parallel()
	file, checks, uri, ad := filepath.Join(t.TempDir(), "keyset.json"), newRows(), fakeKey(t), vault.AD{Row: "r"}
	before := open(t, file, checks)
	sealed, err := before.Seal(auth.NewSecret("x"), ad)
	require.NoError(t, err)
	_, err = openKMS(t.Context(), uri, checks)
	require.ErrorIs(t, err, vault.ErrKeysetMissing)
	require.ErrorContains(t, err, "starter vault move --to "+uri)

	for _, to := range []string{uri, fakeKey(t)} { // and from one key to another
		key, err := clients.Key(t.Context(), to)
		require.NoError(t, err)
		require.NoError(t, before.MoveTo(t.Context(), &vault.KMS{URI: to, Key: key, Store: checks}))
		after, err := openKMS(t.Context(), to, checks)
		require.NoError(t, err)
		got, err := after.Open(sealed, ad)
		require.NoError(t, err)
		require.Equal(t, "x", got.Reveal())
		back, err := after.Seal(auth.NewSecret("y"), ad)
		require.NoError(t, err)
		_, err = before.Open(back, ad)
		require.NoError(t, err)
	}
}

// A process that runs learns of a new key by a value that was sealed with it, or when it looks.
func TestKeysetChangesUnderAProcess(t *testing.T) {
	t.Parallel()
	file, checks, ad := filepath.Join(t.TempDir(), "keyset.json"), newRows(), vault.AD{Row: "r"}
	old := open(t, file, checks)
	rotate(t, file)
	sealed, err := open(t, file, checks).Seal(auth.NewSecret("x"), ad)
	require.NoError(t, err)
	got, err := old.Open(sealed, ad)
	require.NoError(t, err)
	require.Equal(t, "x", got.Reveal())
	own, err := old.Seal(auth.NewSecret("y"), ad)
	require.NoError(t, err)
	require.Equal(t, vault.KeyOf(sealed), vault.KeyOf(own), "and seals with it from then on")

	other := filepath.Join(t.TempDir(), "keyset.json")
	open(t, other, newRows())
	body, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, body, 0o600)) //nolint:gosec // the test's own folder
	require.ErrorIs(t, old.Look(t.Context()), vault.ErrWrongKeyset)
	_, err = old.Open(sealed, ad)
	require.NoError(t, err, "a wrong file changes nothing for who runs")
	require.NoError(t, os.Remove(file))
	require.ErrorIs(t, old.Look(t.Context()), vault.ErrKeysetMissing)
}
