package vault

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// view is a keyset as it was when it was read last.
type view struct {
	raw     []byte
	digest  [sha256.Size]byte
	handle  *keyset.Handle
	aead    tink.AEAD
	primary uint32
	keys    []uint32 // in the order in which they were added
}

func newHandle() (*keyset.Handle, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("vault: make keyset: %w", err)
	}
	return handle, nil
}

func newView(raw []byte, handle *keyset.Handle, where source) (*view, error) {
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("vault: use keyset %s: %w", where, err)
	}
	v := &view{raw: raw, digest: sha256.Sum256(raw), handle: handle, aead: primitive, primary: handle.KeysetInfo().GetPrimaryKeyId()}
	for _, key := range handle.KeysetInfo().GetKeyInfo() {
		v.keys = append(v.keys, key.GetKeyId())
	}
	return v, nil
}

// staged is the key that was added after the primary one, to take its place; 0 if there is none.
func (v *view) staged() uint32 {
	if last := v.keys[len(v.keys)-1]; last != v.primary {
		return last
	}
	return 0
}

// old lists the keys that the primary one has replaced.
func (v *view) old() []uint32 { return v.keys[:max(0, slices.Index(v.keys, v.primary))] }

// change makes another keyset of v's.
func (v *view) change(f func(*keyset.Manager) error) (*keyset.Handle, error) {
	manager := keyset.NewManagerFromHandle(v.handle)
	if err := f(manager); err != nil {
		return nil, fmt.Errorf("vault: change keyset: %w", err)
	}
	handle, err := manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("vault: change keyset: %w", err)
	}
	return handle, nil
}

// KeyOf returns the id of the key that a value was sealed with, 0 if it names none (Tink's prefix: version 1, then the key's
// id).
func KeyOf(cipher []byte) uint32 {
	if len(cipher) <= 5 || cipher[0] != 1 {
		return 0
	}
	return binary.BigEndian.Uint32(cipher[1:5])
}
