package oauth

import (
	"context"
	"fmt"
	"sync"
)

// Uses records who uses which credential: each tool's first use of each version in one attempt. Safe for concurrent use.
type Uses struct {
	by    Use
	store UseStore

	mu   sync.Mutex
	seen map[string]bool
}

// UseStore keeps what [Uses] records.
type UseStore interface {
	// Used writes that a run has used a grant.
	Used(ctx context.Context, g Grant, use Use) error
}

// NewUses is for the attempt that by names. The tool is that of each use if by has none.
func NewUses(store UseStore, by Use) *Uses {
	return &Uses{by: by, store: store, seen: map[string]bool{}}
}

// Record records that tool is about to use g.
func (u *Uses) Record(ctx context.Context, g Grant, tool string) error {
	id := g.Slot.ID() + " " + g.state() + " " + tool
	u.mu.Lock()
	known := u.seen[id]
	u.seen[id] = true
	u.mu.Unlock()
	if known {
		return nil
	}
	use := u.by
	if use.Tool == "" {
		use.Tool = tool
	}
	if err := u.store.Used(ctx, g, use); err != nil {
		return fmt.Errorf("record use: %w", err)
	}
	return nil
}
