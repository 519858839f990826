package adk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/agent"
	"tarry/server/stream"
	"tarry/server/web"
	"tarry/session"
	"tarry/wire"
)

// errClient says that the client of a stream is gone.
var errClient = errors.New("client went away")

// turn is what a client waits for: one invocation after another, each from a place in the log.
type turn struct {
	owner   agent.Owner
	session string
	request string // see [stream.Cursor]
	steps   []heard
	pieces  bool  // whether the client wants pieces of answers
	partial int64 // the last piece that it has
}

// listener is the client of a turn. beat, piece and next may be nil.
type listener struct {
	event func(*session.Record) error
	piece func(session.Partial) error
	beat  func() error
	next  func() // the first of the invocations is over
}

func (h *Handler) run(w http.ResponseWriter, r *http.Request) {
	t, err := h.accept(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	// The answer may be minutes away; the server's write timeout is for answers that are there.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		h.fail(w, r, fmt.Errorf("clear write deadline: %w", err))
		return
	}
	var events []*session.Record
	problem, err := h.follow(r.Context(), t, listener{event: func(e *session.Record) error {
		events = append(events, e)
		return nil
	}})
	switch {
	case err != nil:
		h.fail(w, r, err)
	case problem.text != "" && len(events) == 0:
		h.fail(w, r, web.Refusal(problem.status, "%s", problem.text))
	default:
		web.JSON(w, http.StatusOK, bodies(events))
	}
}

func (h *Handler) runSSE(w http.ResponseWriter, r *http.Request) {
	t, err := h.accept(w, r)
	if err != nil {
		h.failSSE(w, r, err)
		return
	}
	out := stream.NewWriter(w, http.StatusOK)
	gone := func(err error) error {
		if err != nil {
			return fmt.Errorf("%w: %w", errClient, err)
		}
		return nil
	}
	if err := out.Begin(t.cursor()); err != nil {
		return
	}
	problem, err := h.follow(r.Context(), t, listener{
		event: func(e *session.Record) error { return gone(out.Event(e)) },
		piece: func(p session.Partial) error { return gone(out.Partial(p)) },
		beat:  func() error { return gone(out.Comment("the run goes on")) },
		next:  out.Next,
	})
	if errors.Is(err, errClient) {
		h.Logger.DebugContext(r.Context(), "stream ended early", "err", err)
		return
	}
	if err != nil {
		var show bool
		if problem.status, problem.text, show = web.Explain(r, h.Logger, err); !show {
			return
		}
	}
	if problem.text != "" {
		h.frame(r, out, problem.text)
	}
}

// accept checks a run request and stores its message. From there on the run needs nobody to listen.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request) (turn, error) {
	body, err := readBody(w, r)
	if err != nil {
		return turn{}, err
	}
	in, err := decodeRun(body)
	if err != nil {
		return turn{}, err
	}
	if in.key, err = idempotencyKey(r); err != nil {
		return turn{}, err
	}
	owner, err := h.authorize(r, in.app, in.user)
	if err != nil {
		return turn{}, err
	}
	row, err := h.Log.Session(r.Context(), owner, in.session)
	if err != nil {
		return turn{}, noSession(err, in.session)
	}
	t := turn{owner: owner, session: row.ID, request: in.request, pieces: in.streaming}
	if id := stream.LastEventID(r); id != "" {
		return t, h.readOn(r.Context(), row, in, id, &t)
	}
	if len(in.message.replies) > 0 {
		step, err := h.hear(r.Context(), row, in.message.replies, in.latest)
		if err != nil {
			return turn{}, err
		}
		t.steps = append(t.steps, step)
	}
	switch {
	case len(in.message.parts) > 0: // also beside replies: words are a message of their own, for the next invocation
		step, err := h.post(r.Context(), row, in)
		if err != nil {
			return turn{}, err
		}
		t.steps = append(t.steps, step)
	case len(t.steps) == 0:
		step, err := h.resume(r.Context(), row, in)
		if err != nil {
			return turn{}, err
		}
		t.steps = append(t.steps, step)
	}
	return t, nil
}

func (h *Handler) post(ctx context.Context, row session.Session, in runRequest) (heard, error) {
	hash := row.Definition
	if hash == "" {
		var err error
		if hash, err = h.Starter.Definition(ctx, row.Owner.App); errors.Is(err, session.ErrNotFound) {
			return heard{}, notFound("app %s is not published by any worker; start one", row.Owner.App)
		} else if err != nil {
			return heard{}, fmt.Errorf("definition of app: %w", err)
		}
	}
	m := session.Message{
		ID:         in.key.id(row, "message"),
		Invocation: "e-" + in.key.id(row, "invocation"),
		Event:      session.Event{Author: agent.UserAuthor, Content: in.message.content()},
		StateDelta: in.stateDelta,
		Streaming:  in.streaming,
	}
	switch err := h.Log.Post(ctx, row.Owner, row.ID, hash, string(wire.ModeChat), m); {
	case errors.Is(err, session.ErrRepeated):
		return heard{}, web.Refusal(http.StatusUnprocessableEntity, "Idempotency-Key was used for another message of session %s; send a new key with a new message", row.ID)
	case errors.Is(err, session.ErrClosed):
		return heard{}, web.Refusal(http.StatusConflict, "session %s has ended and takes no further message; create another", row.ID)
	case errors.Is(err, session.ErrFull):
		return heard{}, web.Refusal(http.StatusTooManyRequests, "%d messages of session %s wait for their turn; send more when some were answered", session.MaxQueued, row.ID)
	case err != nil:
		return heard{}, noSession(err, row.ID)
	}
	h.Wake()
	return heard{invocation: m.Invocation}, nil
}

// resume serves a request without a message: ADK's way to go on with an invocation. Ours goes on by itself, so the client
// gets what came after the last question.
func (h *Handler) resume(ctx context.Context, row session.Session, in runRequest) (heard, error) {
	invocation := in.invocation
	if invocation == "" && in.latest != "" {
		invocation = row.Invocation
	}
	if invocation == "" {
		return heard{}, invalid("newMessage is missing or has no content")
	}
	i, err := h.Log.Invocation(ctx, row.Owner, invocation)
	if errors.Is(err, session.ErrNotFound) || (err == nil && i.Session != row.ID) {
		return heard{}, notFound("invocation %s is not one of session %s", invocation, row.ID)
	} else if err != nil {
		return heard{}, fmt.Errorf("invocation: %w", err)
	}
	view, err := h.Log.Timeline(ctx, row.Owner, row.ID, 0)
	if err != nil {
		return heard{}, noSession(err, row.ID)
	}
	out := heard{invocation: invocation}
	for e := range asks(view) {
		if e.InvocationID == invocation {
			out.after = e.Seq
		}
	}
	return out, nil
}

// trouble is what a client should be told of how a run ended, where no event says it; status is for where there is no stream.
// The zero value is none.
type trouble struct {
	status int
	text   string
}

// follow tells a client what agents say until there is nothing to wait for.
func (h *Handler) follow(ctx context.Context, t turn, l listener) (problem trouble, err error) {
	told := false
	for _, step := range t.steps {
		o := stream.Options{Invocation: step.invocation, After: step.after, Requests: h.Requests, Poll: h.Poll, Heartbeat: l.beat, Every: h.Heartbeat}
		if t.pieces && l.piece != nil {
			o.Partials, o.AfterPartial, o.EmitPartial = h.Partials, t.partial, l.piece
		}
		why, err := stream.Follow(ctx, h.Log, t.owner, t.session, o, func(e *session.Record) error {
			if e.Author == agent.UserAuthor { // as ADK: the client knows what it said
				return nil
			}
			told = told || e.ErrorCode != "" || e.ErrorMessage != ""
			return l.event(e)
		})
		switch {
		case errors.Is(err, session.ErrNotFound), why == stream.Gone: // here, or made anew since
			return trouble{http.StatusNotFound, "session " + t.session + " was deleted"}, nil
		case err != nil:
			return trouble{}, err //nolint:wrapcheck // of this module, and wrapped there
		case why == stream.Waiting:
			return trouble{}, nil
		case why == stream.Closed:
			return trouble{http.StatusConflict, "session " + t.session + " ended before the message's turn came"}, nil
		}
		if problem, err = h.ending(ctx, t, step.invocation); err != nil {
			return trouble{}, err
		}
		if l.next != nil {
			l.next()
		}
	}
	if told {
		problem = trouble{}
	}
	return problem, nil
}

func (h *Handler) ending(ctx context.Context, t turn, invocation string) (trouble, error) {
	i, err := h.Log.Invocation(ctx, t.owner, invocation)
	if errors.Is(err, session.ErrNotFound) {
		return trouble{http.StatusNotFound, "session " + t.session + " was deleted"}, nil
	} else if err != nil {
		return trouble{}, fmt.Errorf("how the invocation ended: %w", err)
	}
	switch i.Status {
	case wire.EndFailed:
		return trouble{http.StatusInternalServerError, "the run failed; the worker's log says why, invocation " + invocation}, nil
	case wire.EndLimit:
		return trouble{http.StatusInternalServerError, "the run reached a limit of its invocation"}, nil
	case wire.EndSuperseded:
		return trouble{http.StatusConflict, "a newer message ended the run before the person had answered"}, nil
	case wire.EndCancelled:
		return trouble{http.StatusConflict, "the run was cancelled"}, nil
	}
	return trouble{}, nil
}
