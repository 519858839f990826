package tarrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tarry/session"
	"tarry/wire"
)

// patience bounds the time between two pauses of a run, on the real clock.
const patience = time.Minute

// pauses holds the run where it says that nothing but waits is left. As an activity runs then, the test environment's
// clock stands still until the test has decided.
type pauses struct {
	session.Log
	paused, resume chan struct{}
}

// SetStatus implements [session.Log].
func (p *pauses) SetStatus(ctx context.Context, row session.Session, run, status string) error {
	if err := p.Log.SetStatus(ctx, row, run, status); err != nil {
		return fmt.Errorf("set status: %w", err)
	}
	if strings.HasPrefix(status, "waiting_") {
		p.hold()
	}
	return nil
}

func (p *pauses) hold() {
	p.paused <- struct{}{}
	<-p.resume
}

// settle waits until the run pauses or ends.
func (r *Run) settle() {
	r.t.Helper()
	select {
	case <-r.pauses.paused:
	case <-r.done:
		r.ended = true
		if r.err != nil {
			r.t.Fatalf("tarrytest: run: %v", r.err)
		}
	case <-time.After(patience):
		r.stuck.Store(true)
		r.t.Fatalf("tarrytest: the run neither waits nor ends within %s; see what its last events are", patience)
	}
}

// goOn lets a paused run act on what was sent to it.
func (r *Run) goOn() {
	r.t.Helper()
	r.deliver()
	r.pauses.resume <- struct{}{}
	r.settle()
}

// mustWait fails the test unless the run is paused.
func (r *Run) mustWait(what string) {
	r.t.Helper()
	if r.ended {
		r.t.Fatalf("tarrytest: %s: the run has ended (%s) and waits for nothing", what, r.Outcome())
	}
}

// deliver sends the run what is in the outbox, as the server does.
func (r *Run) deliver() {
	r.t.Helper()
	const most, claim = 100, time.Minute
	ctx := context.Background()
	due, err := r.store.Due(ctx, most, claim)
	if err != nil {
		r.t.Fatalf("tarrytest: read outbox: %v", err)
	}
	for _, m := range due {
		if m.Signal != wire.SignalMessage { // which the run's start has sent
			r.env.Load().SignalWorkflow(m.Signal, json.RawMessage(m.Payload))
		}
		if err := r.store.Sent(ctx, m.ID, claim); err != nil {
			r.t.Fatalf("tarrytest: write outbox: %v", err)
		}
	}
}

// ContinueAsNew ends the run that waits, as Temporal asks for when a history has become long, and goes on with the next one
// of its session, which waits for the same. What an agent does must not depend on where that happens; a custom agent's
// function is called again from its beginning. Fails the test if the run has ended.
func (r *Run) ContinueAsNew() {
	r.t.Helper()
	r.mustWait("continue as new")
	before := r.Runs()
	r.env.Load().SignalWorkflow(wire.SignalContinueAsNew, nil)
	r.goOn()
	if r.Runs() == before {
		r.t.Fatalf("tarrytest: the run did not continue as new")
	}
}

// Runs counts the runs of the session's chain so far: 1 before the first one has continued as another.
func (r *Run) Runs() int { return int(r.runs.Load()) }

// Pass lets d pass on the run's clock while it waits: reminders, deadlines and whatever else comes due meanwhile happen. It
// returns early where the run ends. Fails the test if the run has ended before, or d is not positive.
func (r *Run) Pass(d time.Duration) {
	r.t.Helper()
	r.mustWait("pass")
	if d <= 0 {
		r.t.Fatalf("tarrytest: pass %s: say how long, for example time.Hour", d)
	}
	passed, end := false, r.now().Add(d)
	wake := func() {
		passed = true
		r.pauses.hold()
	}
	for env := r.env.Load(); !r.ended && !passed; r.goOn() {
		if now := r.env.Load(); now != env || d > 0 { // a timer does not outlive its run
			now.RegisterDelayedCallback(wake, max(end.Sub(r.now()), time.Nanosecond))
			env, d = now, 0
		}
	}
}

// now is the time on the run's clock.
func (r *Run) now() time.Time { return r.env.Load().Now() }
