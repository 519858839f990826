package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps messages in memory, by the rules of [outbox.Store].
type fakeStore struct {
	mu     sync.Mutex
	rows   map[string]*row
	looks  int
	events []string // "sent a in 1m0s"
	fail   error    // of Due
}

type row struct {
	outbox.Message
	due  time.Time
	done bool
}

func newFakeStore(ids ...string) *fakeStore {
	s := &fakeStore{rows: map[string]*row{}}
	for _, id := range ids {
		s.put(id)
	}
	return s
}

func (s *fakeStore) put(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id] = &row{Message: outbox.Message{ID: id, WorkflowID: "w", Signal: "tarry.message", Subject: id}}
}

func (s *fakeStore) Due(_ context.Context, limit int, claim time.Duration) ([]outbox.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.fail != nil {
		return nil, s.fail
	}
	var out []outbox.Message
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		if r := s.rows[id]; !r.done && !r.due.After(time.Now()) && len(out) < limit {
			r.due = time.Now().Add(claim)
			out = append(out, r.Message)
		}
	}
	return out, nil
}

func (s *fakeStore) note(ctx context.Context, id string, next time.Duration, what string, change func(*row)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprint(what, " ", id, " in ", next))
	r := s.rows[id]
	r.due = time.Now().Add(next)
	change(r)
	return nil
}

func (s *fakeStore) Sent(ctx context.Context, id string, next time.Duration) error {
	return s.note(ctx, id, next, "sent", func(r *row) { r.Sent++; r.Failed = 0 })
}

func (s *fakeStore) Failed(ctx context.Context, id string, next time.Duration) error {
	return s.note(ctx, id, next, "failed", func(r *row) { r.Failed++ })
}

func (s *fakeStore) Gone(ctx context.Context, id string) error {
	return s.note(ctx, id, 0, "gone", func(r *row) { r.done = true })
}

// acted is what a run does with a message.
func (s *fakeStore) acted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id].done = true
}

func (s *fakeStore) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// receiver is the other end.
type receiver struct {
	mu    sync.Mutex
	got   []string
	at    []time.Time
	reply func(m outbox.Message) error
}

func (r *receiver) deliver(_ context.Context, m outbox.Message) error {
	r.mu.Lock()
	r.got, r.at = append(r.got, m.ID), append(r.at, time.Now())
	reply := r.reply
	r.mu.Unlock()
	if reply == nil {
		return nil
	}
	return reply(m)
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.got))
}

const poll = time.Second

// run runs a dispatcher in a bubble whose clock moves when everybody waits.
func run(t *testing.T, s outbox.Store, deliver outbox.Deliver, test func(t *testing.T, d *outbox.Dispatcher, cancel context.CancelFunc)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := outbox.New(s, deliver, slog.New(slog.DiscardHandler), poll)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
		synctest.Wait()
		test(t, d, cancel)
		cancel()
		<-ended
	})
}

func TestDelivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore("a", "b")
		var to receiver
		d := outbox.New(s, to.deliver, slog.New(slog.DiscardHandler), poll)
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, to.all(), "what is there at the start")

		s.put("c")
		d.Wake()
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, to.all(), "woken: at once, the clock did not move")

		s.put("d")
		synctest.Wait()
		require.Len(t, to.all(), 3)
		time.Sleep(poll)
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c", "d"}, to.all(), "what others wrote: at the next look")
		cancel()
		synctest.Wait()
	})
}

func TestWakeNeverBlocks(t *testing.T) {
	t.Parallel()
	d := outbox.New(newFakeStore(), (&receiver{}).deliver, slog.New(slog.DiscardHandler), poll)
	for range 1000 {
		d.Wake()
	}
}

func TestRedeliversUntilActed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore("a")
		var to receiver
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		go outbox.New(s, to.deliver, slog.New(slog.DiscardHandler), poll).Run(ctx)
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		var after []time.Duration
		for _, at := range to.at {
			after = append(after, at.Sub(start).Round(time.Minute))
		}
		require.Equal(t, []time.Duration{
			0, 1 * time.Minute, 5 * time.Minute, 21 * time.Minute, 85 * time.Minute, 341 * time.Minute,
			1365 * time.Minute, 1365*time.Minute + 24*time.Hour, 1365*time.Minute + 48*time.Hour, 1365*time.Minute + 72*time.Hour,
		}, after, "a run takes 10,000 signals at most")
		s.acted("a")
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		require.Len(t, to.all(), 10)
		cancel()
		synctest.Wait()
	})
}

func TestRetryIntervals(t *testing.T) {
	t.Parallel()
	s := newFakeStore("a")
	to := receiver{reply: func(outbox.Message) error { return errors.New("unavailable") }}
	run(t, s, to.deliver, func(t *testing.T, _ *outbox.Dispatcher, _ context.CancelFunc) {
		t.Helper()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []string{
			"failed a in 200ms", "failed a in 400ms", "failed a in 800ms", "failed a in 1.6s", "failed a in 3.2s", "failed a in 6.4s",
			"failed a in 10s", "failed a in 10s", "failed a in 10s",
		}
		require.Equal(t, want, s.log()[:len(want)])
		to.mu.Lock()
		to.reply = nil
		to.mu.Unlock()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		log := s.log()
		require.Equal(t, "sent a in 1m0s", log[len(log)-1], "and then it arrives")
	})
}

func TestGoneIsFinal(t *testing.T) {
	t.Parallel()
	s := newFakeStore("a")
	to := receiver{reply: func(outbox.Message) error { return fmt.Errorf("signal: %w", outbox.ErrGone) }}
	run(t, s, to.deliver, func(t *testing.T, _ *outbox.Dispatcher, _ context.CancelFunc) {
		t.Helper()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"a"}, to.all())
		require.Equal(t, []string{"gone a in 0s"}, s.log())
	})
}

func TestOneBadMessageHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 200 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
	}
	for name, bad := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return errors.New("unavailable") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore(ids...)
				var to receiver
				deliver := func(ctx context.Context, m outbox.Message) error {
					if m.ID == "m000" {
						return bad(ctx)
					}
					return to.deliver(ctx, m)
				}
				d := outbox.New(s, deliver, slog.New(slog.DiscardHandler), poll)
				ctx, cancel := context.WithCancel(t.Context())
				go d.Run(ctx)
				synctest.Wait()
				require.Equal(t, ids[1:], to.all(), "all at once, the clock did not move")
				s.put("late")
				d.Wake()
				synctest.Wait()
				require.Contains(t, to.all(), "late", "nor one that comes while it hangs")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Contains(t, s.log(), "failed m000 in 200ms", "a delivery ends some time")
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A dispatcher claims what it can deliver now: what a dead one has claimed is late by the claim.
func TestClaimsNoMoreThanItDelivers(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprint("m", i))
	}
	s := newFakeStore(ids...)
	var mu sync.Mutex
	inside, most := 0, 0
	var gate chan struct{}
	deliver := func(ctx context.Context, _ outbox.Message) error {
		mu.Lock()
		inside++
		most = max(most, inside)
		mu.Unlock()
		<-gate
		mu.Lock()
		inside--
		mu.Unlock()
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go outbox.New(s, deliver, slog.New(slog.DiscardHandler), poll).Run(ctx)
		synctest.Wait()
		claimed := 0
		s.mu.Lock()
		for _, r := range s.rows {
			if r.due.After(time.Now()) {
				claimed++
			}
		}
		s.mu.Unlock()
		mu.Lock()
		require.Equal(t, inside, claimed)
		require.Less(t, claimed, 100)
		mu.Unlock()
		close(gate)
		synctest.Wait()
		require.Len(t, s.log(), 100)
		require.Equal(t, claimed, most)
		cancel()
		synctest.Wait()
	})
}

func TestStoreErrorsPass(t *testing.T) {
	t.Parallel()
	s := newFakeStore("a")
	s.fail = errors.New("database is down")
	var to receiver
	run(t, s, to.deliver, func(t *testing.T, _ *outbox.Dispatcher, _ context.CancelFunc) {
		t.Helper()
		time.Sleep(10 * poll)
		synctest.Wait()
		s.mu.Lock()
		require.LessOrEqual(t, s.looks, 11, "it does not spin")
		s.fail = nil
		s.mu.Unlock()
		time.Sleep(poll)
		synctest.Wait()
		require.Equal(t, []string{"a"}, to.all())
	})
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newFakeStore("a", "b")
	started := 0
	deliver := func(ctx context.Context, m outbox.Message) error {
		if m.ID == "b" {
			return nil
		}
		started++
		<-ctx.Done()
		return ctx.Err()
	}
	run(t, s, deliver, func(t *testing.T, d *outbox.Dispatcher, cancel context.CancelFunc) {
		t.Helper()
		require.Equal(t, 1, started)
		cancel()
		d.Wake()
		synctest.Wait()
	})
	require.Equal(t, []string{"sent b in 1m0s"}, s.log(), "one that was interrupted is not a failure: its claim runs out")
}

// What arrived is written down also when the process is being stopped: or the next one sends it again.
func TestDeliveredWhileEnding(t *testing.T) {
	t.Parallel()
	s := newFakeStore("a")
	var stop context.CancelFunc
	deliver := func(ctx context.Context, _ outbox.Message) error {
		stop()
		return context.Cause(context.WithoutCancel(ctx)) // nil: it arrived
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop = cancel
		outbox.New(s, deliver, slog.New(slog.DiscardHandler), poll).Run(ctx)
	})
	require.Equal(t, []string{"sent a in 1m0s"}, s.log())
}
