package vault

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Holder is a process that seals, and what it has said of its keyset.
type Holder struct {
	ID string
	// Name is for people: program, host, process.
	Name    string
	Primary uint32
	Keys    []uint32
	// Held is how long it has said that its primary key is this one; for reading alone.
	Held time.Duration
}

// HolderStore keeps what processes say of their keysets.
type HolderStore interface {
	// Announce stores what a process says.
	Announce(ctx context.Context, h Holder) error
	// Leave forgets a process that seals no more.
	Leave(ctx context.Context, id string) error
	// Holders lists the processes that have announced themselves not longer ago than that.
	Holders(ctx context.Context, within time.Duration) ([]Holder, error)
}

const (
	// announceEvery is how often a process says what its keyset is, though it has not changed.
	announceEvery = 20 * time.Second
	// holderLife is how long that counts. It is longer than recentFor: who has not said anything for that long looks at the
	// keyset before it seals again.
	holderLife = time.Minute
)

// Holder is what this process has to say of its keyset.
func (v *Vault) Holder(id, name string) Holder {
	now := v.current()
	return Holder{ID: id, Name: name, Primary: now.primary, Keys: now.keys}
}

// Watch looks every few seconds whether the keyset has changed, and says in the database which one this process has, until
// ctx ends. Rotation waits for that. Run one in every process that seals.
func (v *Vault) Watch(ctx context.Context, holders HolderStore, name string, log *slog.Logger) {
	id := uuid.NewString()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	defer func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
		defer cancel()
		if err := holders.Leave(leaving, id); err != nil {
			log.WarnContext(leaving, "leave the keyset's holders", "err", err)
		}
	}()
	var said *view
	var next time.Time
	for {
		if now := v.current(); now != said || !time.Now().Before(next) {
			if said != nil && now != said {
				log.InfoContext(ctx, "keyset was changed", "keys", len(now.keys), "primary", now.primary)
			}
			if err := holders.Announce(ctx, v.Holder(id, name)); err == nil {
				said, next = now, time.Now().Add(announceEvery)
			} else if ctx.Err() == nil {
				log.WarnContext(ctx, "announce keyset", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := v.Look(ctx); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "keyset cannot be read", "err", err)
		}
	}
}
