package main

import (
	"context"
	"fmt"
	"sync"
)

// point is where scenarios of a round wait for each other.
type point string

const (
	// published: the agent is written; the worker has to read it.
	published point = "publish"
	// asked: the run waits for a person; the worker may be killed.
	asked point = "ask"
	// answered: the person has answered; the run needs a worker.
	answered point = "answer"
)

// barrier lets the scenarios of a round go on only when each of them has come to a point or has left. It is safe for
// concurrent use.
type barrier struct {
	// meet runs once for each meeting, with the points that the scenarios came to, before they go on; and once without
	// points when all have left.
	meet func(context.Context, map[point]int) error

	mu      sync.Mutex
	members map[string]bool
	waiting map[string]visit
	over    bool // all have left, and the last meeting was
}

type visit struct {
	at   point
	done chan error
}

func newBarrier(meet func(context.Context, map[point]int) error, members []string) *barrier {
	b := &barrier{meet: meet, members: map[string]bool{}, waiting: map[string]visit{}}
	for _, m := range members {
		b.members[m] = true
	}
	return b
}

// arrive waits until all members have arrived or left and returns what the meeting did.
func (b *barrier) arrive(ctx context.Context, member string, at point) error {
	v := visit{at, make(chan error, 1)}
	b.mu.Lock()
	b.waiting[member] = v
	b.mu.Unlock()
	b.check(ctx)
	select {
	case err := <-v.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the round: %w", context.Cause(ctx))
	}
}

// leave takes out a member that has ended.
func (b *barrier) leave(ctx context.Context, member string) {
	b.mu.Lock()
	delete(b.members, member)
	delete(b.waiting, member)
	b.mu.Unlock()
	b.check(ctx)
}

func (b *barrier) check(ctx context.Context) {
	b.mu.Lock()
	if len(b.waiting) < len(b.members) || b.over {
		b.mu.Unlock()
		return
	}
	b.over = len(b.members) == 0
	here := b.waiting
	b.waiting = map[string]visit{}
	b.mu.Unlock()
	points := map[point]int{}
	for _, v := range here {
		points[v.at]++
	}
	err := b.meet(context.WithoutCancel(ctx), points)
	for _, v := range here {
		v.done <- err
	}
}
