package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tarry/auth"
)

// Errors of this package. They never contain what was sealed.
var (
	// ErrKeysetMissing: the database holds secrets of a keyset, and the keyset is not there.
	ErrKeysetMissing = errors.New("vault: keyset is missing")
	// ErrWrongKeyset: the keyset is not the one that the database's secrets were encrypted with.
	ErrWrongKeyset = errors.New("vault: keyset does not fit the database")
	// ErrCipher: a value does not open: damaged, or moved from another row. It never will.
	ErrCipher = errors.New("vault: value does not open")
	// ErrNoKey: a value was sealed with a key that is not in this keyset; it may be in another copy of it.
	ErrNoKey = errors.New("vault: the value's key is not in the keyset")
)

// Config says where a vault's keyset is and how it is proven.
type Config struct {
	// KeysetFile is created, with mode 0600, if neither it nor the proof in the database exists. It is as valuable as
	// every secret in the database: back it up, apart from the database.
	KeysetFile string
	// KMS, if it is set, takes the place of KeysetFile.
	KMS *KMS
	// Checks is the database.
	Checks CheckStore
}

func (c Config) source() source {
	if c.KMS != nil {
		return c.KMS
	}
	return fileSource(c.KeysetFile)
}

// Vault seals and opens with AES-256-GCM. It is safe for concurrent use. A keyset that changes under it, as one that is
// rotated does, is read anew: see [Vault.Look].
type Vault struct {
	source source
	checks CheckStore

	mu     sync.Mutex
	view   *view
	looked time.Time // when the keyset was seen last to be what view is

	looking sync.Mutex
	tried   time.Time // when a value with an unknown key was the reason to look
}

const (
	keysetCheck = "vault-keyset"
	keyPrefix   = "vault-key/"
	proof       = "this keyset fits"
	keySize     = 32
	columnProof = "proof"
	columnKey   = "key"
)

// Open loads the keyset, or creates it when the database has never seen one, and proves that it fits the database.
func Open(ctx context.Context, cfg Config) (*Vault, error) {
	v := &Vault{source: cfg.source(), checks: cfg.Checks}
	raw, err := v.source.read(ctx)
	if errors.Is(err, errNone) {
		if raw, err = v.create(ctx); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	next, err := v.load(ctx, raw)
	if err != nil {
		return nil, err
	}
	v.view, v.looked = next, began
	return v, nil
}

// create refuses to replace a keyset that was lost by a new one, which would make every stored secret unreadable while
// new ones pile up beside them.
func (v *Vault) create(ctx context.Context) ([]byte, error) {
	switch _, err := stored(ctx, v.checks, keysetCheck); {
	case err == nil:
		// Who wrote the check had made the keyset before: perhaps since we looked, when processes start together.
		if raw, err := v.source.read(ctx); !errors.Is(err, errNone) {
			return raw, err
		}
		return nil, fmt.Errorf("%w: %s has none, but the database holds secrets encrypted with one; %s", ErrKeysetMissing, v.source, v.source.lost())
	case !errors.Is(err, errNone):
		return nil, fmt.Errorf("vault: read keyset check: %w", err)
	}
	handle, err := newHandle()
	if err != nil {
		return nil, err
	}
	if err := v.source.create(ctx, handle); err != nil {
		return nil, err
	}
	return v.source.read(ctx) // whoever created it, what lies there now is the keyset
}

// load makes a view of what the source has, and proves it. A keyset that does not fit may have been one of a moment ago,
// when a rotation has just sealed the proof with a newer key.
func (v *Vault) load(ctx context.Context, raw []byte) (*view, error) {
	for {
		handle, err := v.source.parse(ctx, raw)
		if err != nil {
			return nil, err
		}
		next, err := newView(raw, handle, v.source)
		if err != nil {
			return nil, err
		}
		wrong := v.prove(ctx, next)
		if !errors.Is(wrong, ErrWrongKeyset) {
			return next, wrong
		}
		if raw, err = v.source.read(ctx); err != nil || bytes.Equal(raw, next.raw) {
			return nil, errors.Join(wrong, err)
		}
	}
}

func (v *Vault) prove(ctx context.Context, next *view) error {
	ad := AD{Row: keysetCheck, Column: columnProof}
	kept, err := v.checks.Check(ctx, keysetCheck, func() ([]byte, error) { return next.seal(auth.NewSecret(proof), ad) })
	if err != nil {
		return fmt.Errorf("vault: read keyset check: %w", err)
	}
	plain, err := next.open(kept, ad)
	if err != nil || subtle.ConstantTimeCompare([]byte(plain.Reveal()), []byte(proof)) != 1 {
		return fmt.Errorf("%w: %s is not the keyset that this database was filled with, or a copy from before its keys were rotated; "+
			"put the right one there, or connect to the database that it belongs to", ErrWrongKeyset, v.source)
	}
	return nil
}

// Seal encrypts plain for the place that ad names, with the key that is the primary one now.
func (v *Vault) Seal(plain auth.Secret, ad AD) ([]byte, error) {
	now, err := v.recent()
	if err != nil {
		return nil, fmt.Errorf("vault: seal %s: %w", ad.Column, err)
	}
	return now.seal(plain, ad)
}

// Open decrypts what was sealed for exactly ad, else [ErrCipher] or [ErrNoKey].
func (v *Vault) Open(cipher []byte, ad AD) (auth.Secret, error) {
	plain, err := v.current().open(cipher, ad)
	if errors.Is(err, ErrNoKey) && v.lookForKey() == nil {
		return v.current().open(cipher, ad)
	}
	return plain, err
}

func (v *view) seal(plain auth.Secret, ad AD) ([]byte, error) {
	out, err := v.aead.Encrypt([]byte(plain.Reveal()), ad.encode())
	if err != nil {
		return nil, fmt.Errorf("vault: seal %s: %w", ad.Column, err)
	}
	return out, nil
}

func (v *view) open(cipher []byte, ad AD) (auth.Secret, error) {
	plain, err := v.aead.Decrypt(cipher, ad.encode())
	if key := KeyOf(cipher); err != nil && key != 0 && !slices.Contains(v.keys, key) {
		return auth.Secret{}, fmt.Errorf("%w: %s", ErrNoKey, ad.Column)
	}
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%w: %s", ErrCipher, ad.Column)
	}
	return auth.NewSecret(string(plain)), nil
}

// NamedKey returns a random key of 32 bytes that belongs to name, created at the first call by any process. It lies
// encrypted in the database and stays the same when the keyset rotates.
func (v *Vault) NamedKey(ctx context.Context, name string) ([]byte, error) {
	row := keyPrefix + name
	ad := AD{Row: row, Column: columnKey}
	kept, err := v.checks.Check(ctx, row, func() ([]byte, error) { //nolint:contextcheck // Seal has none: most callers are inside no request
		key := make([]byte, keySize)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make key: %w", err)
		}
		return v.Seal(auth.NewSecret(string(key)), ad)
	})
	if err != nil {
		return nil, fmt.Errorf("vault: key %s: %w", name, err)
	}
	key, err := v.Open(kept, ad) //nolint:contextcheck // as above
	if err != nil {
		return nil, fmt.Errorf("vault: key %s: %w", name, err)
	}
	if len(key.Reveal()) != keySize {
		return nil, fmt.Errorf("vault: key %s: %w", name, ErrCipher)
	}
	return []byte(key.Reveal()), nil
}
