package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	claim    = 30 * time.Second
	batch    = 64
	parallel = 8
)

// Dispatcher delivers messages. Make it with [New]; run one per process.
type Dispatcher struct {
	store   Store
	deliver Deliver
	log     *slog.Logger
	poll    time.Duration
	wake    chan struct{}
}

// New makes a dispatcher that looks for due messages when woken, and every poll for those that others wrote.
func New(store Store, deliver Deliver, log *slog.Logger, poll time.Duration) *Dispatcher {
	return &Dispatcher{store: store, deliver: deliver, log: log, poll: poll, wake: make(chan struct{}, 1)}
}

// Wake makes the dispatcher look at once. It never blocks.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	tick := time.NewTicker(d.poll)
	defer tick.Stop()
	for {
		if d.round(ctx) == batch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-tick.C:
		}
	}
}

func (d *Dispatcher) round(ctx context.Context) int {
	messages, err := d.store.Due(ctx, batch, claim)
	if err != nil {
		if ctx.Err() == nil {
			d.log.WarnContext(ctx, "read outbox", "err", err)
		}
		return 0
	}
	slots := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for _, m := range messages {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			d.one(ctx, m)
		})
	}
	group.Wait()
	return len(messages)
}

func (d *Dispatcher) one(ctx context.Context, m Message) {
	err := d.deliver(ctx, m)
	var record error
	switch {
	case err == nil:
		record = d.store.Sent(ctx, m.ID, again(m.Sent))
	case errors.Is(err, ErrGone):
		d.log.InfoContext(ctx, "receiver is gone", "workflow_id", m.WorkflowID, "signal", m.Signal)
		record = d.store.Gone(ctx, m.ID)
	case ctx.Err() != nil:
		return // the claim runs out by itself
	default:
		d.log.WarnContext(ctx, "deliver signal", "workflow_id", m.WorkflowID, "signal", m.Signal, "attempt", m.Failed+1, "err", err)
		record = d.store.Failed(ctx, m.ID, retry(m.Failed))
	}
	if record != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "record delivery", "workflow_id", m.WorkflowID, "err", record)
	}
}

// again grows quickly: a run takes 10,000 signals at most, and a delivery that was accepted is seldom lost.
func again(sent int) time.Duration {
	return min(time.Minute<<min(2*sent, 20), 24*time.Hour)
}

func retry(failed int) time.Duration {
	return min(200*time.Millisecond<<min(failed, 10), 10*time.Second)
}
