package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// meetings remembers what a barrier's members came to.
type meetings struct {
	mu  sync.Mutex
	all []map[point]int
	err error
}

func (m *meetings) meet(_ context.Context, points map[point]int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, points)
	return m.err
}

func TestNobodyGoesOnAlone(t *testing.T) {
	t.Parallel()
	var m meetings
	b := newBarrier(m.meet, []string{"a", "b", "c"})
	var all sync.WaitGroup
	for _, member := range []string{"a", "b", "c"} {
		all.Go(func() {
			defer b.leave(t.Context(), member)
			for _, at := range []point{published, asked, answered} {
				if member == "c" && at == asked {
					return // its run has ended
				}
				if b.arrive(t.Context(), member, at) != nil {
					return
				}
			}
		})
	}
	all.Wait()
	b.leave(t.Context(), "c") // again, as of the end of its process
	require.Equal(t, []map[point]int{{published: 3}, {asked: 2}, {answered: 2}, {}}, m.all)
}

func TestTheLastToLeaveLetsTheOthersGoOn(t *testing.T) {
	t.Parallel()
	m := meetings{err: errors.New("no worker")}
	b := newBarrier(m.meet, []string{"a", "b"})
	done := make(chan error)
	go func() { done <- b.arrive(t.Context(), "a", published) }()
	b.leave(t.Context(), "b")
	require.ErrorIs(t, <-done, m.err)
	require.Equal(t, []map[point]int{{published: 1}}, m.all)
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	b := newBarrier((&meetings{}).meet, []string{"a", "b"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.arrive(ctx, "a", published), context.Canceled)
}
