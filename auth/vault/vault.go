package vault

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/tink"

	"tarry/auth"
)

// Errors of this package. They never contain what was sealed.
var (
	// ErrKeysetMissing: the database holds secrets of a keyset, and the keyset file is not there.
	ErrKeysetMissing = errors.New("vault: keyset file is missing")
	// ErrWrongKeyset: the keyset file is not the one that the database's secrets were encrypted with.
	ErrWrongKeyset = errors.New("vault: keyset does not fit the database")
	// ErrCipher: a value does not open: damaged, or moved from another row. It never will.
	ErrCipher = errors.New("vault: value does not open")
	// ErrNoKey: a value was sealed with a key that is not in this keyset; it may be in another copy of the file.
	ErrNoKey = errors.New("vault: the value's key is not in the keyset file")
)

// CheckStore keeps small rows that are written once.
type CheckStore interface {
	// Check returns the bytes stored under name. If there are none, it stores what create returns, unless another
	// process was faster, and returns what is stored then. An error of create stores nothing and is returned.
	Check(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error)
}

// Config says where a vault's key is and how it is proven.
type Config struct {
	// KeysetFile is created, with mode 0600, if neither it nor the proof in the database exists. It is as valuable as
	// every secret in the database: back it up, apart from the database.
	KeysetFile string
	// Checks is the database.
	Checks CheckStore
}

// Vault seals and opens with AES-256-GCM. It is safe for concurrent use.
type Vault struct {
	aead   tink.AEAD
	checks CheckStore
	keys   map[uint32]bool // those of the keyset, by id
}

const (
	keysetCheck = "vault-keyset"
	keyPrefix   = "vault-key/"
	proof       = "this keyset fits"
	keySize     = 32
)

// Open loads the keyset, or creates it when the database has never seen one, and proves that it fits the database.
func Open(ctx context.Context, cfg Config) (*Vault, error) {
	handle, err := loadKeyset(cfg.KeysetFile)
	if errors.Is(err, errNoFile) {
		if err := refuseSecondKeyset(ctx, cfg); err != nil {
			return nil, err
		}
		if err := createKeyset(cfg.KeysetFile); err != nil {
			return nil, err
		}
		// Whoever created the file, what lies there now is the keyset.
		handle, err = loadKeyset(cfg.KeysetFile)
	}
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("vault: use keyset %s: %w", cfg.KeysetFile, err)
	}
	v := &Vault{aead: primitive, checks: cfg.Checks, keys: map[uint32]bool{}}
	for _, key := range handle.KeysetInfo().GetKeyInfo() {
		v.keys[key.GetKeyId()] = true
	}
	if err := v.prove(ctx, cfg.KeysetFile); err != nil {
		return nil, err
	}
	return v, nil
}

// refuseSecondKeyset keeps a lost file from being replaced by a new one, which would make every stored secret
// unreadable while new ones pile up beside them.
func refuseSecondKeyset(ctx context.Context, cfg Config) error {
	fresh := false
	errFresh := errors.New("vault: no keyset yet")
	_, err := cfg.Checks.Check(ctx, keysetCheck, func() ([]byte, error) {
		fresh = true
		return nil, errFresh
	})
	switch {
	case fresh:
		return nil
	case err != nil:
		return fmt.Errorf("vault: read keyset check: %w", err)
	}
	return fmt.Errorf("%w: %s does not exist, but the database holds secrets encrypted with it; put the file back from its backup, "+
		"or start with an empty database (everybody logs in again)", ErrKeysetMissing, cfg.KeysetFile)
}

func (v *Vault) prove(ctx context.Context, file string) error {
	ad := AD{Row: keysetCheck, Column: "proof"}
	stored, err := v.checks.Check(ctx, keysetCheck, func() ([]byte, error) { return v.Seal(auth.NewSecret(proof), ad) })
	if err != nil {
		return fmt.Errorf("vault: read keyset check: %w", err)
	}
	plain, err := v.Open(stored, ad)
	if err != nil || subtle.ConstantTimeCompare([]byte(plain.Reveal()), []byte(proof)) != 1 {
		return fmt.Errorf("%w: %s is not the keyset that this database was filled with; put the right file there, or connect "+
			"to the database that it belongs to", ErrWrongKeyset, file)
	}
	return nil
}

// Seal encrypts plain for the place that ad names.
func (v *Vault) Seal(plain auth.Secret, ad AD) ([]byte, error) {
	out, err := v.aead.Encrypt([]byte(plain.Reveal()), ad.encode())
	if err != nil {
		return nil, fmt.Errorf("vault: seal %s: %w", ad.Column, err)
	}
	return out, nil
}

// Open decrypts what was sealed for exactly ad, else [ErrCipher] or [ErrNoKey].
func (v *Vault) Open(cipher []byte, ad AD) (auth.Secret, error) {
	plain, err := v.aead.Decrypt(cipher, ad.encode())
	if err != nil && v.foreign(cipher) {
		return auth.Secret{}, fmt.Errorf("%w: %s", ErrNoKey, ad.Column)
	}
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%w: %s", ErrCipher, ad.Column)
	}
	return auth.NewSecret(string(plain)), nil
}

// foreign says whether a value names a key that the keyset does not have (Tink's prefix: version 1, then the key's id).
func (v *Vault) foreign(cipher []byte) bool {
	return len(cipher) > 5 && cipher[0] == 1 && !v.keys[binary.BigEndian.Uint32(cipher[1:5])]
}

// NamedKey returns a random key of 32 bytes that belongs to name, created at the first call by any process. It lies
// encrypted in the database and stays the same when the keyset rotates.
func (v *Vault) NamedKey(ctx context.Context, name string) ([]byte, error) {
	row := keyPrefix + name
	ad := AD{Row: row, Column: "key"}
	stored, err := v.checks.Check(ctx, row, func() ([]byte, error) {
		key := make([]byte, keySize)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make key: %w", err)
		}
		return v.Seal(auth.NewSecret(string(key)), ad)
	})
	if err != nil {
		return nil, fmt.Errorf("vault: key %s: %w", name, err)
	}
	key, err := v.Open(stored, ad)
	if err != nil {
		return nil, fmt.Errorf("vault: key %s: %w", name, err)
	}
	if len(key.Reveal()) != keySize {
		return nil, fmt.Errorf("vault: key %s: %w", name, ErrCipher)
	}
	return []byte(key.Reveal()), nil
}
