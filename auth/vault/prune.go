package vault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/keyset"
)

// The states of a key.
const (
	KeyPrimary = "primary" // seals
	KeyStaged  = "staged"  // will be the primary one
	KeyOld     = "old"     // was the primary one; opens
	KeyUnknown = "unknown" // values name it, and the keyset lacks it
)

// KeyStatus is a key and how many values it has sealed.
type KeyStatus struct {
	ID     uint32 `json:"id"`
	State  string `json:"state"`
	Values int    `json:"values"`
}

// Status is where a keyset stands.
type Status struct {
	// Source is the file, or the URI of the key that encrypts the keyset.
	Source  string
	Keys    []KeyStatus
	Holders []Holder
}

// Status counts what each key has sealed, and lists the processes that seal.
func (r *Rotator) Status(ctx context.Context) (Status, error) {
	out := Status{Source: r.Vault.source.String()}
	if err := r.Vault.Look(ctx); err != nil {
		return out, err
	}
	counts, err := r.count(ctx, func() error { return nil })
	if err != nil {
		return out, err
	}
	now, state := r.Vault.current(), KeyOld
	for _, id := range now.keys {
		if id == now.primary {
			state = KeyPrimary
		}
		out.Keys = append(out.Keys, KeyStatus{id, state, counts[id]})
		delete(counts, id)
		if id == now.primary {
			state = KeyStaged
		}
	}
	for id, n := range counts {
		out.Keys = append(out.Keys, KeyStatus{id, KeyUnknown, n})
	}
	if out.Holders, err = r.Store.Holders(ctx, holderLife); err != nil {
		return out, fmt.Errorf("vault: list processes: %w", err)
	}
	return out, nil
}

func (r *Rotator) count(ctx context.Context, between func() error) (map[uint32]int, error) {
	counts := map[uint32]int{}
	err := each(ctx, r.Store, between, func(_ Place, value Sealed) error {
		counts[KeyOf(value.Cipher)]++
		return nil
	})
	return counts, err
}

const settle = 30 * time.Second

// Prune removes the keys that a rotation has replaced, once no value is sealed with them and every process has sealed with
// the primary key for a while. It returns the keys that it removed. [ErrInUse]: a value is sealed with one; none was
// removed.
func (r *Rotator) Prune(ctx context.Context) (removed []uint32, err error) {
	if err := r.lock(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.unlock(ctx)) }()
	if err := r.Vault.Look(ctx); err != nil {
		return nil, err
	}
	old := r.Vault.current().old()
	if len(old) == 0 {
		return nil, nil
	}
	primary, quiet := r.Vault.current().primary, r.Settle
	if quiet == 0 {
		quiet = settle
	}
	r.Wait += quiet
	if err := r.wait(ctx, "has sealed with the primary key for a while", func(h Holder) bool { return h.Primary == primary && h.Held >= quiet }); err != nil {
		return nil, err
	}
	counts, err := r.count(ctx, func() error { return r.keep(ctx) })
	if err != nil {
		return nil, err
	}
	var used []string
	for _, id := range old {
		if n := counts[id]; n > 0 {
			used = append(used, fmt.Sprintf("key %d by %d values", id, n))
		}
	}
	if len(used) > 0 {
		return nil, fmt.Errorf("%w: %s; run starter vault rotate, which seals them anew or names those that do not open", ErrInUse, strings.Join(used, ", "))
	}
	err = r.change(ctx, func(m *keyset.Manager) error {
		for _, id := range old {
			if err := m.Delete(id); err != nil {
				return err //nolint:wrapcheck // change wraps
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return old, nil
}

// MoveTo puts a copy of the keyset into the database, encrypted with a key management service's key, in place of one that
// may be there: with another key, or of before.
func (v *Vault) MoveTo(ctx context.Context, k *KMS) error {
	if err := v.Look(ctx); err != nil {
		return err
	}
	handle := v.current().handle
	switch raw, err := k.read(ctx); {
	case errors.Is(err, errNone):
		return k.create(ctx, handle)
	case err != nil:
		return err
	default:
		return k.replace(ctx, raw, handle)
	}
}
