package vault_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"go.uber.org/goleak"

	"tarry/auth"
	"tarry/auth/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a CheckStore in memory.
type rows struct {
	mu   sync.Mutex
	rows map[string][]byte
}

func newRows() *rows { return &rows{rows: map[string][]byte{}} }

func (r *rows) Check(_ context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.rows[name]; ok {
		return b, nil
	}
	b, err := create()
	if err != nil {
		return nil, err
	}
	r.rows[name] = b
	return b, nil
}

func open(t *testing.T, file string, checks vault.CheckStore) *vault.Vault {
	t.Helper()
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: file, Checks: checks})
	require.NoError(t, err)
	return v
}

func TestSealedValuesOpenInTheirPlaceOnly(t *testing.T) {
	t.Parallel()
	v := open(t, filepath.Join(t.TempDir(), "keyset.json"), newRows())
	ad := vault.AD{
		App: "app", User: "ann", Row: "row", Issuer: "https://as", Resource: "https://rs", Client: "c",
		TokenEndpoint: "https://as/token", Column: "access", Version: 7,
	}
	sealed, err := v.Seal(auth.NewSecret("the token"), ad)
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "the token")

	got, err := v.Open(sealed, ad)
	require.NoError(t, err)
	require.Equal(t, "the token", got.Reveal())

	fields := reflect.TypeFor[vault.AD]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			t.Parallel()
			other := ad
			f := reflect.ValueOf(&other).Elem().Field(i)
			if f.Kind() == reflect.String {
				f.SetString(f.String() + "x")
			} else {
				f.SetInt(f.Int() + 1)
			}
			_, err := v.Open(sealed, other)
			require.ErrorIs(t, err, vault.ErrCipher)
		})
	}

	t.Run("a character moved to the next part", func(t *testing.T) {
		t.Parallel()
		other := ad
		other.App, other.User = "ap", "pann"
		_, err := v.Open(sealed, other)
		require.ErrorIs(t, err, vault.ErrCipher)
	})
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		bad := bytes.Clone(sealed)
		bad[len(bad)-1] ^= 1
		for _, b := range [][]byte{bad, nil, {}, sealed[:4]} {
			_, err := v.Open(b, ad)
			require.ErrorIs(t, err, vault.ErrCipher)
		}
	})
	t.Run("of another keyset", func(t *testing.T) {
		t.Parallel()
		_, err := open(t, filepath.Join(t.TempDir(), "keyset.json"), newRows()).Open(sealed, ad)
		require.ErrorIs(t, err, vault.ErrNoKey)
		require.NotErrorIs(t, err, vault.ErrCipher)
	})
}

func TestKeysetFileIsPrivateAndWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "deep", "keyset.json")
	open(t, file, newRows())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

func TestManyProcessesCreateOneKeyset(t *testing.T) {
	t.Parallel()
	file, checks := filepath.Join(t.TempDir(), "keyset.json"), newRows()
	vaults := make([]*vault.Vault, 8)
	var wg sync.WaitGroup
	for i := range vaults {
		wg.Go(func() {
			v, err := vault.Open(context.Background(), vault.Config{KeysetFile: file, Checks: checks})
			if err == nil {
				vaults[i] = v
			}
		})
	}
	wg.Wait()
	require.NotNil(t, vaults[0])
	sealed, err := vaults[0].Seal(auth.NewSecret("x"), vault.AD{Row: "r"})
	require.NoError(t, err)
	for _, v := range vaults {
		require.NotNil(t, v)
		got, err := v.Open(sealed, vault.AD{Row: "r"})
		require.NoError(t, err)
		require.Equal(t, "x", got.Reveal())
	}
}

// slow is a CheckStore that lets another process make the keyset before it answers for the first time.
type slow struct {
	*rows

	once  sync.Once
	other func()
}

func (s *slow) Check(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	s.once.Do(s.other)
	return s.rows.Check(ctx, name, create)
}

// A process that finds no keyset, and then the check of one that another has just made, takes that one.
func TestKeysetThatAppearsMeanwhile(t *testing.T) {
	t.Parallel()
	file, checks := filepath.Join(t.TempDir(), "keyset.json"), newRows()
	var first *vault.Vault
	second := open(t, file, &slow{rows: checks, other: func() { first = open(t, file, checks) }})
	sealed, err := first.Seal(auth.NewSecret("x"), vault.AD{Row: "r"})
	require.NoError(t, err)
	got, err := second.Open(sealed, vault.AD{Row: "r"})
	require.NoError(t, err)
	require.Equal(t, "x", got.Reveal())
}

func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("keyset lost", func(t *testing.T) {
		t.Parallel()
		file, checks := filepath.Join(t.TempDir(), "keyset.json"), newRows()
		open(t, file, checks)
		require.NoError(t, os.Remove(file))
		_, err := vault.Open(t.Context(), vault.Config{KeysetFile: file, Checks: checks})
		require.ErrorIs(t, err, vault.ErrKeysetMissing)
		require.ErrorContains(t, err, "backup")
		require.NoFileExists(t, file, "a lost keyset is not replaced by a new one")
	})
	t.Run("keyset of another database", func(t *testing.T) {
		t.Parallel()
		checks := newRows()
		open(t, filepath.Join(t.TempDir(), "keyset.json"), checks)
		other := filepath.Join(t.TempDir(), "keyset.json")
		open(t, other, newRows())
		_, err := vault.Open(t.Context(), vault.Config{KeysetFile: other, Checks: checks})
		require.ErrorIs(t, err, vault.ErrWrongKeyset)
	})
	t.Run("damaged keyset is not repeated in the error", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "keyset.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"key":[{"keyData":{"value":"SECRETVALUE"}`), 0o600))
		_, err := vault.Open(t.Context(), vault.Config{KeysetFile: file, Checks: newRows()})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "SECRETVALUE")
	})
	t.Run("database down", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "keyset.json")
		_, err := vault.Open(t.Context(), vault.Config{KeysetFile: file, Checks: down{}})
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoFileExists(t, file)
	})
}

type down struct{}

func (down) Check(context.Context, string, func() ([]byte, error)) ([]byte, error) {
	return nil, os.ErrDeadlineExceeded
}

func TestNamedKeySurvivesRotation(t *testing.T) {
	t.Parallel()
	file, checks := filepath.Join(t.TempDir(), "keyset.json"), newRows()
	v := open(t, file, checks)
	key, err := v.NamedKey(t.Context(), "workflow-user-hmac")
	require.NoError(t, err)
	require.Len(t, key, 32)
	other, err := v.NamedKey(t.Context(), "other")
	require.NoError(t, err)
	require.NotEqual(t, key, other)
	require.False(t, bytes.Contains(checks.rows["vault-key/workflow-user-hmac"], key))

	rotate(t, file)
	again, err := open(t, file, checks).NamedKey(t.Context(), "workflow-user-hmac")
	require.NoError(t, err)
	require.Equal(t, key, again)
}

func rotate(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
	require.NoError(t, err)
	manager := keyset.NewManagerFromHandle(handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	require.NoError(t, err)
	require.NoError(t, manager.SetPrimary(id))
	handle, err = manager.Handle()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
}
