package demo

import (
	"context"
	"sync"
)

// Gate is a place where a test holds a server up. It is closed until Open; all methods are safe for concurrent use.
type Gate struct {
	once    sync.Once
	open    chan struct{}
	arrived chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{open: make(chan struct{}), arrived: make(chan struct{}, 1024)}
}

// Pass announces an arrival and blocks until the gate is open or ctx is done. A nil gate is open.
func (g *Gate) Pass(ctx context.Context) {
	if g == nil {
		return
	}
	select {
	case g.arrived <- struct{}{}:
	default: // a thousand arrivals that nobody awaits need no announcement
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}

// Arrived receives once for each call of Pass.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets everybody through from now on. Repeated calls do nothing.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }
