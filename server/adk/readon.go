package adk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tarry/server/stream"
	"tarry/session"
)

// messageKey is what a client calls a message, so that sending it again is no second message; empty: nothing.
type messageKey string

const maxKey = 255

// idempotencyKey reads the header of that name (draft-ietf-httpapi-idempotency-key-header).
func idempotencyKey(r *http.Request) (messageKey, error) {
	all := r.Header.Values("Idempotency-Key")
	if len(all) == 0 {
		return "", nil
	}
	key := strings.Trim(all[0], `"`) // a quoted string there, and bare in most clients
	if len(all) > 1 || key == "" || len(key) > maxKey {
		return "", invalid("Idempotency-Key is not one text of 1 to %d bytes; a new UUID for each message will do", maxKey)
	}
	return messageKey(key), nil
}

// id makes the same id for the same key in a session, and a new one without a key.
func (k messageKey) id(row session.Session, role string) string {
	if k == "" {
		return uuid.NewString()
	}
	session := uuid.NewSHA1(uuid.NameSpaceOID, []byte("tarry/message\x00"+row.WorkflowID))
	return uuid.NewSHA1(session, []byte(role+"\x00"+string(k))).String()
}

// cursor is where a turn begins.
func (t turn) cursor() stream.Cursor {
	c := stream.Cursor{Partial: t.partial, Request: t.request}
	for _, step := range t.steps {
		c.Invocations = append(c.Invocations, step.invocation)
	}
	if len(t.steps) > 0 {
		c.Seq = t.steps[0].after
	}
	return c
}

// readOn goes on with a stream that broke off behind the frame id. What the body says was heard when that stream began, and is
// not said again; a body that says something else is refused, so that nothing is lost.
func (h *Handler) readOn(ctx context.Context, row session.Session, in runRequest, id string, t *turn) error {
	at, err := stream.ParseCursor(id)
	if err != nil {
		return invalid("Last-Event-ID (or starting_after) %q is not the id of a frame of /run_sse; leave it out to send a message", brief(id))
	}
	if says := len(in.message.parts)+len(in.message.replies) > 0; says && at.Request != in.request {
		return invalid("Last-Event-ID (or starting_after) is of the stream of another request: leave it out to send newMessage, or leave newMessage out to read on")
	}
	if at.Invocations == nil {
		one, err := h.invocationAt(ctx, row, at.Seq)
		if err != nil {
			return err
		}
		at.Invocations = []string{one}
	}
	for _, name := range at.Invocations {
		i, err := h.Log.Invocation(ctx, row.Owner, name)
		if errors.Is(err, session.ErrNotFound) || err == nil && i.Session != row.ID {
			return invalid("Last-Event-ID (or starting_after) is not of a stream of session %s", row.ID)
		} else if err != nil {
			return noSession(err, row.ID)
		}
		t.steps = append(t.steps, heard{name, at.Seq})
	}
	t.partial = at.Partial
	return nil
}

// invocationAt is the invocation of an event, or of what the session is at where no event has that place.
func (h *Handler) invocationAt(ctx context.Context, row session.Session, seq int64) (string, error) {
	view, err := h.Log.Timeline(ctx, row.Owner, row.ID, 0)
	if err != nil {
		return "", noSession(err, row.ID)
	}
	if i := slices.IndexFunc(view, func(r *session.Record) bool { return r.Seq == seq }); i >= 0 && view[i].InvocationID != "" {
		return view[i].InvocationID, nil
	}
	if row.Invocation == "" {
		return "", invalid("Last-Event-ID (or starting_after) %d: session %s has no event of that place", seq, row.ID)
	}
	return row.Invocation, nil
}
