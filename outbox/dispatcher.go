package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	parallel = 16
	// patience bounds one delivery, and claim is longer: a message is not claimed twice while it is being delivered.
	patience = 10 * time.Second
	claim    = 20 * time.Second
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

// Run delivers until ctx ends. It claims what it can deliver at once and no more, so that a delivery that hangs holds up
// nothing else, and what a killed process had claimed is late by seconds.
func (d *Dispatcher) Run(ctx context.Context) {
	tick := time.NewTicker(d.poll)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, parallel)
	for {
		for more := true; more; {
			more = d.round(ctx, &group, slots)
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-tick.C:
		}
	}
}

// round waits for a free slot and fills the free ones; more says that there may be more to do.
func (d *Dispatcher) round(ctx context.Context, group *sync.WaitGroup, slots chan struct{}) (more bool) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	free := 1 + parallel - len(slots) // only this goroutine takes slots
	messages, err := d.store.Due(ctx, free, claim)
	if err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "read outbox", "err", err)
	}
	for i, m := range messages {
		if i > 0 {
			slots <- struct{}{}
		}
		group.Go(func() {
			defer func() { <-slots }()
			d.one(ctx, m)
		})
	}
	if len(messages) == 0 {
		<-slots
	}
	return len(messages) == free && ctx.Err() == nil
}

func (d *Dispatcher) one(ctx context.Context, m Message) {
	err := d.try(ctx, m)
	if err != nil && !errors.Is(err, ErrGone) && ctx.Err() != nil {
		return // the claim runs out by itself
	}
	// What happened is recorded also when the process is being stopped: or the next one sends it again.
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	switch {
	case err == nil:
		err = d.store.Sent(record, m.ID, again(m.Sent))
	case errors.Is(err, ErrGone):
		d.log.InfoContext(ctx, "receiver is gone", "workflow_id", m.WorkflowID, "signal", m.Signal)
		err = d.store.Gone(record, m.ID)
	default:
		d.log.WarnContext(ctx, "deliver signal", "workflow_id", m.WorkflowID, "signal", m.Signal, "attempt", m.Failed+1, "err", err)
		err = d.store.Failed(record, m.ID, retry(m.Failed))
	}
	if err != nil {
		d.log.WarnContext(ctx, "record delivery", "workflow_id", m.WorkflowID, "err", err)
	}
}

func (d *Dispatcher) try(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.deliver(ctx, m)
}

// again grows quickly: a run takes 10,000 signals at most, and a delivery that was accepted is seldom lost.
func again(sent int) time.Duration {
	return min(time.Minute<<min(2*sent, 20), 24*time.Hour)
}

func retry(failed int) time.Duration {
	return min(200*time.Millisecond<<min(failed, 10), 10*time.Second)
}
