package stream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/server/stream"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/wire"
)

var ann = agent.Owner{App: "tickets", User: "ann"}

// reader follows a session in the background and hands out what it gets.
type reader struct {
	t    *testing.T
	got  chan *session.Record
	why  chan stream.Why
	errs chan error
}

func follow(ctx context.Context, t *testing.T, log session.Log, o stream.Options) *reader {
	t.Helper()
	r := &reader{t: t, got: make(chan *session.Record, 1000), why: make(chan stream.Why, 1), errs: make(chan error, 1)}
	o.Poll = time.Millisecond
	go func() {
		why, err := stream.Follow(ctx, log, ann, "s1", o, func(e *session.Record) error {
			r.got <- e
			return nil
		})
		close(r.got)
		r.errs <- err
		r.why <- why
	}()
	return r
}

func (r *reader) next() *session.Record {
	r.t.Helper()
	select {
	case e, ok := <-r.got:
		require.True(r.t, ok, "stream ended")
		return e
	case <-time.After(streamtest.Patience):
		r.t.Fatal("no event")
		return nil
	}
}

// rest returns the ids of what is still to come, and why the stream ended.
func (r *reader) rest() ([]string, stream.Why) {
	r.t.Helper()
	ids := []string{}
	for e := range r.got {
		ids = append(ids, e.ID)
	}
	require.NoError(r.t, <-r.errs)
	return ids, <-r.why
}

func TestFollowEndsWithTheInvocation(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	invocation := p.Post("hi", wire.ModeChat)
	r := follow(t.Context(), t, s, stream.Options{Invocation: invocation, Requests: s})
	user := p.Take()
	require.Equal(t, user.ID, r.next().ID)
	said := p.Say("let me see", "call-1")
	require.Equal(t, said.ID, r.next().ID)
	found, answer := p.Respond("call-1", ""), p.Say("there it is")
	p.Finish(wire.EndDone, false)
	ids, why := r.rest()
	require.Equal(t, []string{found.ID, answer.ID}, ids)
	require.Equal(t, stream.Ended, why)

	// What is over is read again from any place.
	ids, why = follow(t.Context(), t, s, stream.Options{Invocation: invocation, After: said.Seq}).rest()
	require.Equal(t, []string{found.ID, answer.ID}, ids)
	require.Equal(t, stream.Ended, why)
}

func TestFollowLeavesOtherInvocationsOut(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	p.Post("one", wire.ModeChat)
	second := p.Post("two", wire.ModeChat)
	r := follow(t.Context(), t, s, stream.Options{Invocation: second, Requests: s})
	p.Take()
	p.Say("first answer")
	p.Finish(wire.EndDone, false)
	user, answer := p.Take(), p.Say("second answer")
	p.Finish(wire.EndDone, false)
	ids, why := r.rest()
	require.Equal(t, []string{user.ID, answer.ID}, ids)
	require.Equal(t, stream.Ended, why)
}

func TestFollowEndsAtAWait(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	invocation := p.Post("hi", wire.ModeChat)
	o := stream.Options{Invocation: invocation, Requests: s}
	r := follow(t.Context(), t, s, o)
	user, calls := p.Take(), p.Say("", "call-1", "call-2")
	p.AskOnly("call-1", "r1")
	p.Ask("call-2", "r2")
	ids, why := r.rest()
	require.Equal(t, stream.Waiting, why)
	require.Len(t, ids, 4)
	require.Equal(t, []string{user.ID, calls.ID}, ids[:2])

	// The login is there, and the run has not acted on it: a reader who comes now gets what follows.
	view, err := s.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	p.Grant("r1")
	o.After = view[2].Seq
	r = follow(t.Context(), t, s, o)
	require.Equal(t, view[3].ID, r.next().ID)
	found := p.Respond("call-1", "r1")
	require.Equal(t, found.ID, r.next().ID)
	p.Wait()
	ids, why = r.rest()
	require.Empty(t, ids)
	require.Equal(t, stream.Waiting, why, "the other branch still waits")

	// A denial is an outcome like others.
	p.Deny("r2")
	o.After = found.Seq
	r = follow(t.Context(), t, s, o)
	denied := p.Respond("call-2", "r2")
	require.Equal(t, denied.ID, r.next().ID)
	p.Say("only half of it")
	p.Finish(wire.EndDone, false)
	ids, why = r.rest()
	require.Len(t, ids, 1)
	require.Equal(t, stream.Ended, why)
}

func TestFollowAfterAToolsetAsked(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	invocation := p.Post("hi", wire.ModeChat)
	p.Take()
	p.Ask("", "r1")
	view, err := s.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	o := stream.Options{Invocation: invocation, Requests: s, After: view[1].Seq}
	ids, why := follow(t.Context(), t, s, o).rest()
	require.Empty(t, ids)
	require.Equal(t, stream.Waiting, why)

	p.Grant("r1")
	r := follow(t.Context(), t, s, o)
	answer := p.Say("listed and done")
	require.Equal(t, answer.ID, r.next().ID)
	p.Finish(wire.EndDone, false)
	_, why = r.rest()
	require.Equal(t, stream.Ended, why)
}

func TestFollowUntilClosed(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	p.Post("hi", wire.ModeJob)
	r := follow(t.Context(), t, s, stream.Options{Until: stream.UntilClosed})
	p.Take()
	p.Say("", "call-1")
	p.Ask("call-1", "r1")
	for range 3 {
		r.next()
	}
	p.Grant("r1")
	p.Respond("call-1", "r1")
	r.next()
	p.Say("done")
	p.Finish(wire.EndDone, true)
	ids, why := r.rest()
	require.Len(t, ids, 1)
	require.Equal(t, stream.Closed, why)
}

func TestFollowUntilEnd(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	invocation := p.Post("hi", wire.ModeChat)
	p.Take()
	p.Say("", "call-1")
	p.Ask("call-1", "r1")
	r := follow(t.Context(), t, s, stream.Options{Invocation: invocation, Until: stream.UntilEnd, Requests: s})
	for range 3 {
		r.next()
	}
	p.Grant("r1")
	found := p.Respond("call-1", "r1")
	p.Finish(wire.EndDone, false)
	ids, why := r.rest()
	require.Equal(t, []string{found.ID}, ids)
	require.Equal(t, stream.Ended, why)
}

func TestFollowADeletedSession(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	p.Post("hi", wire.ModeChat)
	r := follow(t.Context(), t, s, stream.Options{Until: stream.UntilClosed})
	p.Take()
	r.next()
	require.NoError(t, s.Delete(t.Context(), ann, "s1"))
	_, why := r.rest()
	require.Equal(t, stream.Gone, why)

	_, err := stream.Follow(t.Context(), s, ann, "s1", stream.Options{}, nil)
	require.ErrorIs(t, err, session.ErrNotFound)
}

// late shows the event with seq hidden only from the third look on, as a transaction that took its number first and
// committed last.
type late struct {
	session.Log
	mu     sync.Mutex
	hidden int64
	looks  int
}

func (l *late) Reread(ctx context.Context, owner agent.Owner, id string, known map[string]*session.Record) ([]*session.Record, error) {
	view, err := l.Log.Reread(ctx, owner, id, known)
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*session.Record
	for _, r := range view {
		if r.Seq != l.hidden || l.looks > 1 {
			out = append(out, r)
		}
	}
	l.looks++
	return out, err
}

func (l *late) Standing(ctx context.Context, owner agent.Owner, id string) (session.Session, error) {
	row, err := l.Log.Standing(ctx, owner, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	row.Updated = row.Updated.Add(time.Duration(l.looks)) // every commit touches the row
	return row, err
}

func TestFollowMissesNothingThatCommitsLate(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	p.Post("hi", wire.ModeChat)
	p.Take()
	p.Say("", "call-1", "call-2")
	first, second := p.Respond("call-1", ""), p.Respond("call-2", "")
	r := follow(t.Context(), t, &late{Log: s, hidden: first.Seq}, stream.Options{})
	r.next()
	r.next()
	require.Equal(t, second.ID, r.next().ID)
	require.Equal(t, first.ID, r.next().ID)
	p.Finish(wire.EndDone, false)
	ids, _ := r.rest()
	require.Empty(t, ids)
}

func TestFollowBeatsAndStops(t *testing.T) {
	t.Parallel()
	s, _ := streamtest.Open(t)
	p := streamtest.New(t, s, ann, "s1")
	p.Post("hi", wire.ModeChat)
	ctx, cancel := context.WithCancel(t.Context())
	beats := make(chan struct{}, 1000)
	r := follow(ctx, t, s, stream.Options{Every: time.Millisecond, Heartbeat: func() error {
		beats <- struct{}{}
		return nil
	}})
	<-beats
	<-beats
	cancel()
	require.ErrorIs(t, <-r.errs, context.Canceled)

	broken := errors.New("pipe is broken")
	_, err := stream.Follow(t.Context(), s, ann, "s1", stream.Options{Poll: time.Millisecond, Every: time.Millisecond, Heartbeat: func() error { return broken }}, nil)
	require.ErrorIs(t, err, broken)
}
