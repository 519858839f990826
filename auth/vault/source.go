package vault

import (
	"context"
	"errors"

	"github.com/tink-crypto/tink-go/v2/keyset"
)

var (
	errNone    = errors.New("vault: no keyset yet")
	errChanged = errors.New("vault: somebody else changed the keyset meanwhile")
)

// source is where a keyset lies: a file, or the database.
type source interface {
	// read returns the keyset as it lies there, errNone if there is none.
	read(ctx context.Context) ([]byte, error)
	// parse makes a keyset of what read returned.
	parse(ctx context.Context, raw []byte) (*keyset.Handle, error)
	// create puts a keyset there, unless one is there by then.
	create(ctx context.Context, h *keyset.Handle) error
	// replace puts a keyset in the place of what read returned, errChanged if something else is there by now.
	replace(ctx context.Context, old []byte, h *keyset.Handle) error
	// String names it in errors.
	String() string
	// lost says what to do when the database knows of a keyset and none is here.
	lost() string
}

// CheckStore keeps small rows that are written once.
type CheckStore interface {
	// Check returns the bytes stored under name. If there are none, it stores what create returns, unless another
	// process was faster, and returns what is stored then. An error of create stores nothing and is returned.
	Check(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error)
}

// SwapStore is a CheckStore whose rows can be replaced.
type SwapStore interface {
	CheckStore
	// Swap replaces the bytes stored under name; false if they are not before.
	Swap(ctx context.Context, name string, before, after []byte) (bool, error)
}

// stored reads a row, errNone if there is none.
func stored(ctx context.Context, checks CheckStore, name string) ([]byte, error) {
	return checks.Check(ctx, name, func() ([]byte, error) { return nil, errNone }) //nolint:wrapcheck // callers wrap
}
