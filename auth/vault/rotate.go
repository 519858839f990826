package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Errors of a rotation. Whatever it was doing goes on when it is run again.
var (
	// ErrRotating: another rotation is under way.
	ErrRotating = errors.New("vault: another rotation is under way")
	// ErrBehind: a process has another keyset than this one.
	ErrBehind = errors.New("vault: a process has another keyset")
	// ErrInUse: values that a key has sealed are still there.
	ErrInUse = errors.New("vault: old keys are in use")
)

// RotationStore is the database of a rotation.
type RotationStore interface {
	HolderStore
	SealedStore
	// LockRotation takes the one lock, or keeps it, for that long; false if another has it.
	LockRotation(ctx context.Context, holder string, lease time.Duration) (bool, error)
	// UnlockRotation gives it back.
	UnlockRotation(ctx context.Context, holder string) error
}

// Rotator changes the keys of a keyset that other processes use meanwhile.
type Rotator struct {
	Vault *Vault
	Store RotationStore
	// Wait is how long to wait for another rotation to end, and for each step of the other processes.
	Wait time.Duration
	// Settle is how long every process must have sealed with the primary key before older ones are removed: what was sealed
	// before may still be on its way to the database. 0 means half a minute.
	Settle time.Duration
	// Say tells the person how it goes on; may be nil.
	Say func(format string, args ...any)

	id string
}

// Rotated is what a rotation has done.
type Rotated struct {
	Primary uint32
	// Finished says that this was the rest of a rotation that had been interrupted; no key was added.
	Finished bool
	Resealed int
	// Unreadable are values that do not open, now or before: damaged, or moved from another row.
	Unreadable []Place
}

const (
	lockLease = time.Minute
	pollEvery = 500 * time.Millisecond
	maxPasses = 10
)

// Rotate adds a key, waits until every process has it, makes it the primary one, waits until every process seals with it,
// and seals everything anew. Killed at any point, it goes on from there when it is run again.
func (r *Rotator) Rotate(ctx context.Context) (out Rotated, err error) {
	if err := r.lock(ctx); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.unlock(ctx)) }()
	if out.Finished, err = r.stage(ctx); err != nil {
		return out, err
	}
	if staged := r.Vault.current().staged(); staged != 0 {
		if err := r.wait(ctx, "has the new key", func(h Holder) bool { return slices.Contains(h.Keys, staged) }); err != nil {
			return out, err
		}
		if err := r.change(ctx, func(m *keyset.Manager) error { return m.SetPrimary(staged) }); err != nil {
			return out, err
		}
		r.say("key %d is the primary one", staged)
	}
	out.Primary = r.Vault.current().primary
	if err := r.wait(ctx, "seals with the new key", func(h Holder) bool { return h.Primary == out.Primary }); err != nil {
		return out, err
	}
	// What was sealed just before a process changed over comes in late.
	for range maxPasses {
		n, left, err := r.Vault.reseal(ctx, r.Store, func() error { return r.keep(ctx) })
		out.Resealed, out.Unreadable = out.Resealed+n, left
		if err != nil || n == 0 {
			return out, err
		}
		r.say("sealed %d values anew", out.Resealed)
	}
	return out, nil
}

// stage adds a key, unless an earlier rotation did or has not sealed everything anew; finished says that.
func (r *Rotator) stage(ctx context.Context) (finished bool, err error) {
	if err := r.Vault.Look(ctx); err != nil {
		return false, err
	}
	now := r.Vault.current()
	if now.staged() != 0 {
		return true, nil
	}
	rest, err := r.Vault.rest(ctx, r.Store, func() error { return r.keep(ctx) })
	if err != nil || rest {
		return rest, err
	}
	var added uint32
	err = r.change(ctx, func(m *keyset.Manager) (err error) {
		added, err = m.Add(aead.AES256GCMKeyTemplate())
		return err //nolint:wrapcheck // change wraps
	})
	if err == nil {
		r.say("key %d was added", added)
	}
	return false, err
}

// rest says whether there is a value that another key than the primary one has sealed, and that opens.
func (v *Vault) rest(ctx context.Context, store SealedStore, between func() error) (bool, error) {
	now := v.current()
	errFound := errors.New("found")
	err := each(ctx, store, between, func(_ Place, value Sealed) error {
		if KeyOf(value.Cipher) == now.primary {
			return nil
		}
		if _, err := now.open(value.Cipher, value.AD); err != nil {
			return nil //nolint:nilerr // it stays as it is
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// change writes another keyset and takes it over.
func (r *Rotator) change(ctx context.Context, f func(*keyset.Manager) error) error {
	if err := r.keep(ctx); err != nil {
		return err
	}
	now := r.Vault.current()
	handle, err := now.change(f)
	if err != nil {
		return err
	}
	if err := r.Vault.source.replace(ctx, now.raw, handle); err != nil {
		return fmt.Errorf("vault: write keyset %s: %w", r.Vault.source, err)
	}
	return r.Vault.Look(ctx)
}

// wait waits until every process that seals is as it has to be.
func (r *Rotator) wait(ctx context.Context, what string, ready func(Holder) bool) error {
	until, said := time.Now().Add(r.Wait), ""
	for {
		if err := r.keep(ctx); err != nil {
			return err
		}
		holders, err := r.Store.Holders(ctx, holderLife)
		if err != nil {
			return fmt.Errorf("vault: list processes: %w", err)
		}
		var behind []string
		for _, h := range holders {
			for _, key := range h.Keys {
				if !slices.Contains(r.Vault.current().keys, key) {
					return fmt.Errorf("%w: %s has key %d, which %s lacks; run this where the newest copy of the keyset is", ErrBehind, h.Name, key, r.Vault.source)
				}
			}
			if !ready(h) {
				behind = append(behind, h.Name)
			}
		}
		names := strings.Join(behind, ", ")
		switch {
		case len(behind) == 0:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%w: not yet so that each %s: %s; if they have copies of %s, replace them by what it is now, then run this again",
				ErrBehind, what, names, r.Vault.source)
		case names != said:
			r.say("waiting until each process %s: %s", what, names)
			said = names
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func (r *Rotator) lock(ctx context.Context) error {
	if r.id == "" {
		r.id = uuid.NewString()
	}
	for until, said := time.Now().Add(r.Wait), false; ; {
		err := r.keep(ctx)
		if !errors.Is(err, ErrRotating) || time.Now().After(until) {
			return err
		}
		if !said {
			r.say("another rotation is under way, or was killed less than %s ago; waiting", lockLease)
			said = true
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// keep takes the lock, or takes it for longer.
func (r *Rotator) keep(ctx context.Context) error {
	switch ok, err := r.Store.LockRotation(ctx, r.id, lockLease); {
	case err != nil:
		return fmt.Errorf("vault: lock rotation: %w", err)
	case !ok:
		return ErrRotating
	}
	return nil
}

func (r *Rotator) unlock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer cancel()
	if err := r.Store.UnlockRotation(ctx, r.id); err != nil {
		return fmt.Errorf("vault: unlock rotation: %w", err)
	}
	return nil
}

func (r *Rotator) say(format string, args ...any) {
	if r.Say != nil {
		r.Say(format, args...)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own
	case <-timer.C:
		return nil
	}
}
