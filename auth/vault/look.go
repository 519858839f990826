package vault

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

const (
	// lookEvery is how often a process looks whether the keyset has changed.
	lookEvery = 5 * time.Second
	// recentFor is how old the last look may be when something is sealed: a process that was suspended must not seal with a
	// key that was replaced meanwhile, and may be gone soon.
	recentFor = 30 * time.Second
	// lookPause is between looks that values with unknown keys cause: there may be many of those.
	lookPause = time.Second
	// lookPatience bounds one look.
	lookPatience = 5 * time.Second
)

// Look reads the keyset anew if it has changed. A keyset that is gone, cannot be read or does not fit the database is an
// error and changes nothing.
func (v *Vault) Look(ctx context.Context) error {
	began := time.Now()
	raw, err := v.source.read(ctx)
	if errors.Is(err, errNone) {
		return fmt.Errorf("%w: %s is gone; %s", ErrKeysetMissing, v.source, v.source.lost())
	}
	if err != nil {
		return err
	}
	now := v.current()
	if now.digest != sha256.Sum256(raw) {
		if now, err = v.load(ctx, raw); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if began.After(v.looked) { // else somebody has read it later
		v.view, v.looked = now, began
	}
	return nil
}

func (v *Vault) current() *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.view
}

// recent is the keyset, read or compared not long ago.
func (v *Vault) recent() (*view, error) {
	v.mu.Lock()
	old := time.Since(v.looked.Round(0)) > recentFor // the wall clock: the other one stands while the machine sleeps
	v.mu.Unlock()
	if old {
		ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
		defer cancel()
		if err := v.Look(ctx); err != nil {
			return nil, err
		}
	}
	return v.current(), nil
}

// lookForKey looks because a value names a key that is not here. Whoever comes meanwhile waits for the one look.
func (v *Vault) lookForKey() error {
	v.looking.Lock()
	defer v.looking.Unlock()
	if time.Since(v.tried) < lookPause {
		return nil
	}
	defer func() { v.tried = time.Now() }()
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	return v.Look(ctx)
}
