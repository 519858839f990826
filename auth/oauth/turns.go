package oauth

import (
	"context"
	"sync"
)

// turns lets one caller at a time work on a name; a provider that does not answer holds up its own logins and no others.
// The zero value is ready; safe for concurrent use.
type turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

type turn struct {
	held  chan struct{}
	users int // who holds it or waits for it
}

// take waits for the name's turn, or for the end of ctx, whose error it then returns. Call release once.
func (t *turns) take(ctx context.Context, name string) (release func(), err error) {
	t.mu.Lock()
	one, ok := t.names[name]
	if !ok {
		one = &turn{held: make(chan struct{}, 1)}
		if t.names == nil {
			t.names = map[string]*turn{}
		}
		t.names[name] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.names, name)
		}
	}
	select {
	case one.held <- struct{}{}:
		return func() { <-one.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err() //nolint:wrapcheck // the caller wraps it
	}
}
