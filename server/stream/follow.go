package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

// Why a stream ended.
type Why string

// The reasons.
const (
	// Ended: the invocation is done, failed, cancelled, over its limit or superseded.
	Ended Why = "ended"
	// Waiting: every branch of the invocation waits for a person.
	Waiting Why = "waiting"
	// Closed: the session takes no further message.
	Closed Why = "closed"
	// Gone: the session was deleted.
	Gone Why = "gone"
)

// Until says what ends a stream.
type Until int

const (
	// UntilPause ends when the invocation has ended or waits with every branch.
	UntilPause Until = iota
	// UntilEnd goes on through waits, to the end of the invocation.
	UntilEnd
	// UntilClosed goes on through waits and invocations, until the session is closed.
	UntilClosed
)

// Requests lists the requests of an owner, newest first.
type Requests interface {
	Requests(ctx context.Context, owner agent.Owner, onlyOpen bool, limit int) ([]auth.Request, error)
}

// Options of [Follow]. The zero value reads all events and goes on until the session is idle, waits or is closed.
type Options struct {
	// Invocation limits the stream to the events and the end of one invocation; empty means all events, and the end of
	// whatever runs.
	Invocation string
	// After is the Seq of the last event that the reader has.
	After int64
	// Partials, if not nil, is read for pieces of answers while models give them; EmitPartial gets those with Seq > AfterPartial
	// before their event, each once.
	Partials     session.Partials
	AfterPartial int64
	EmitPartial  func(session.Partial) error
	Until        Until
	// Requests tell a wait from one that was answered a moment ago, whose run has not gone on yet; nil leaves it to the
	// session's status.
	Requests Requests
	// Poll is the shortest time between two looks; 0 means 50 ms. Without news the intervals grow to five times that.
	Poll time.Duration
	// Heartbeat is called after Every of silence (0 means 15 s), so that proxies keep the connection; nil means never.
	Heartbeat func() error
	Every     time.Duration
}

const (
	defaultPoll      = 50 * time.Millisecond
	defaultHeartbeat = 15 * time.Second
	slowest          = 5               // times Poll
	reread           = 5 * time.Second // the log is read this often whether or not the session's row has changed
)

// Follow calls emit for each event of the session's timeline with Seq > After, once and in order, and returns when what
// o.Until names has happened. PostgreSQL commits out of order what its sequences number, so an event may become visible
// after a later one: it is emitted then, hence what was sent is kept as a set. An error of ctx, emit or the log ends it.
func Follow(ctx context.Context, log session.Log, owner agent.Owner, id string, o Options, emit func(*session.Record) error) (Why, error) {
	f := &follower{log: log, owner: owner, id: id, o: o, emit: emit, sent: map[int64]bool{}, known: map[string]*session.Record{}, heard: time.Now(), pieces: newPieces(o.AfterPartial)}
	if f.o.Poll <= 0 {
		f.o.Poll = defaultPoll
	}
	if f.o.Every <= 0 {
		f.o.Every = defaultHeartbeat
	}
	why, err := f.run(ctx)
	if errors.Is(err, session.ErrNotFound) && f.row.WorkflowID != "" {
		return Gone, nil
	}
	if err != nil {
		return "", fmt.Errorf("follow session: %w", err)
	}
	return why, nil
}

type follower struct {
	log   session.Log
	owner agent.Owner
	id    string
	o     Options
	emit  func(*session.Record) error

	row  session.Session
	view []*session.Record // all of the timeline, as of the last read, without what was said
	// known is that and what was in it before, by id.
	known map[string]*session.Record
	sent  map[int64]bool
	// pieces are those of answers that are not stored yet.
	pieces pieces
	read   time.Time // when the log was read
	heard  time.Time // when the reader last got something
}

func (f *follower) run(ctx context.Context) (Why, error) {
	pause := f.o.Poll
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		news, why, err := f.look(ctx)
		if err != nil || why != "" {
			return why, err
		}
		if pause = min(pause+pause/8, slowest*f.o.Poll); news {
			pause = f.o.Poll
		}
		if err := f.beat(); err != nil {
			return "", err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return "", ctx.Err() //nolint:wrapcheck // Follow wraps
		case <-timer.C:
		}
	}
}

// look reads the session's one row, and the log only when that row says that something happened.
func (f *follower) look(ctx context.Context) (news bool, why Why, err error) {
	pieces, err := f.listen(ctx) // before the row: what came before a piece must be seen before it
	if err != nil {
		return false, "", err
	}
	row, err := f.log.Standing(ctx, f.owner, f.id)
	if err != nil {
		return false, "", err //nolint:wrapcheck // Follow wraps
	}
	changed := !row.Updated.Equal(f.row.Updated) || row.Status != f.row.Status || row.Invocation != f.row.Invocation || row.Closed != f.row.Closed
	f.row = row
	if changed || time.Since(f.read) > reread {
		if err := f.deliver(ctx, pieces); err != nil {
			return false, "", err
		}
	} else if err := f.tell(pieces, ""); err != nil {
		return false, "", err
	} else if f.o.Until != UntilPause || !f.waits() { // an end would have changed the row; a request's row is another
		return len(pieces) > 0, "", nil
	}
	if why, err = f.over(ctx); err != nil || why == "" {
		return changed || len(pieces) > 0, "", err
	}
	// What came between the read and the end, in the same transaction as the end at the latest.
	return true, why, f.deliver(ctx, nil)
}

func (f *follower) deliver(ctx context.Context, pieces []session.Partial) error {
	f.read = time.Now()
	view, err := f.log.Reread(ctx, f.owner, f.id, f.known)
	if err != nil {
		return err //nolint:wrapcheck // Follow wraps
	}
	f.remember(view)
	for _, r := range view {
		if r.Seq <= f.o.After || f.sent[r.Seq] || (f.o.Invocation != "" && r.InvocationID != f.o.Invocation) {
			continue
		}
		if err := f.tell(pieces, r.ID); err != nil {
			return err
		}
		if err := f.emit(r); err != nil {
			return err
		}
		f.sent[r.Seq] = true
		f.heard = time.Now()
	}
	return f.tell(pieces, "")
}

// remember keeps what tells how the session stands. What was said is let go: a reader would hold a whole conversation, and many
// may read one.
func (f *follower) remember(view []*session.Record) {
	f.view = make([]*session.Record, len(view))
	for i, r := range view {
		if f.known[r.ID] == nil {
			f.known[r.ID] = outline(r)
		}
		f.view[i] = f.known[r.ID]
	}
}

func outline(r *session.Record) *session.Record {
	out := &session.Record{Seq: r.Seq, Parents: r.Parents, Kind: r.Kind}
	out.ID, out.Author, out.InvocationID, out.LongRunningToolIDs = r.ID, r.Author, r.InvocationID, r.LongRunningToolIDs
	for _, call := range r.Calls() {
		if out.Content == nil {
			out.Content = &genai.Content{}
		}
		out.Content.Parts = append(out.Content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Name}})
	}
	return out
}

func (f *follower) beat() error {
	if f.o.Heartbeat == nil || time.Since(f.heard) < f.o.Every {
		return nil
	}
	f.heard = time.Now()
	return f.o.Heartbeat()
}

// waits says whether the session's row shows a wait of the invocation that is followed.
func (f *follower) waits() bool {
	return strings.HasPrefix(f.row.Status, "waiting_") && (f.o.Invocation == "" || f.o.Invocation == f.row.Invocation)
}

// over says whether the stream ends, and why.
func (f *follower) over(ctx context.Context) (Why, error) {
	if f.o.Until == UntilClosed {
		if f.row.Closed {
			return Closed, nil
		}
		return "", nil
	}
	ended, err := f.ended(ctx)
	switch {
	case err != nil:
		return "", err
	case ended:
		return Ended, nil
	case f.row.Closed: // an invocation that was still queued will never run
		return Closed, nil
	case f.o.Until == UntilEnd || !f.waits():
		return "", nil
	}
	pending, err := pending(ctx, f.log, f.o.Requests, f.row, f.view)
	if err != nil || !pending {
		return "", err
	}
	return Waiting, nil
}

func (f *follower) ended(ctx context.Context) (bool, error) {
	if f.o.Invocation == "" { // an invocation that was only just posted is not the session's current one yet
		return f.row.Status == string(wire.StateIdle), nil
	}
	i, err := f.log.Invocation(ctx, f.owner, f.o.Invocation)
	if err != nil {
		return false, err //nolint:wrapcheck // Follow wraps
	}
	return !i.Ended.IsZero(), nil
}
