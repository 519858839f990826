package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"tarry/agent"
	"tarry/server/web"
	"tarry/session"
)

const (
	// ADK's list has no pages: it ends with the newest maxSessions, and leaves states out that would make them more than
	// maxStates bytes.
	maxSessions = 500
	maxStates   = 4 << 20
	// maxBody bounds what any route takes, in bytes: an artifact as base64. Package server bounds each route besides.
	maxBody = session.MaxArtifact/3*4 + 4<<20
	// maxStateKeys and maxStateKey bound the state that one request writes: its keys, and each key's bytes.
	maxStateKeys = 1000
	maxStateKey  = 512
)

// sessionJSON is ADK's Session.
type sessionJSON struct {
	ID             string            `json:"id"`
	AppName        string            `json:"appName"`
	UserID         string            `json:"userId"`
	State          map[string]any    `json:"state"`
	Events         []json.RawMessage `json:"events"`
	LastUpdateTime float64           `json:"lastUpdateTime"` // seconds since 1970
}

func sessionOf(row session.Session, state map[string]any) sessionJSON {
	out := sessionJSON{
		ID: row.ID, AppName: row.Owner.App, UserID: row.Owner.User,
		State: state, Events: []json.RawMessage{}, LastUpdateTime: session.Seconds(row.Updated),
	}
	if out.State == nil {
		out.State = map[string]any{}
	}
	return out
}

func bodies(view []*session.Record) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(view))
	for _, r := range view {
		out = append(out, r.Body)
	}
	return out
}

// listed is what a list shows of a session's state: what clients wrote, and not what runs did since. Reading every log for a list
// is too dear.
func listed(row session.Session) map[string]any {
	out := maps.Clone(row.Initial)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range row.Patched {
		if out[key] = value; value == nil {
			delete(out, key)
		}
	}
	return out
}

// listSessions leaves events out, as ADK does.
func (h *Handler) listSessions(w http.ResponseWriter, r *http.Request) {
	owner, err := h.owner(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	rows, err := h.Log.Sessions(r.Context(), owner, maxSessions)
	if err != nil {
		h.fail(w, r, fmt.Errorf("list sessions: %w", err))
		return
	}
	out, size := []sessionJSON{}, 0
	for _, row := range rows {
		state := listed(row)
		if body, err := json.Marshal(state); err != nil || size+len(body) > maxStates {
			state = nil
		} else {
			size += len(body)
		}
		out = append(out, sessionOf(row, state))
	}
	web.JSON(w, http.StatusOK, out)
}

func (h *Handler) getSession(w http.ResponseWriter, r *http.Request) {
	owner, err := h.owner(r)
	if err == nil {
		var out sessionJSON
		if out, err = h.load(r.Context(), owner, r.PathValue("session")); err == nil {
			web.JSON(w, http.StatusOK, out)
			return
		}
	}
	h.fail(w, r, err)
}

// session reads a session's row. What cannot be an id is that of no session; a database may refuse to look for it.
func (h *Handler) session(ctx context.Context, owner agent.Owner, id string) (session.Session, error) {
	if agent.CheckID("session", id) != nil {
		return session.Session{}, noSession(session.ErrNotFound, id)
	}
	row, err := h.Log.Session(ctx, owner, id)
	if err != nil {
		return row, noSession(err, id)
	}
	return row, nil
}

func (h *Handler) load(ctx context.Context, owner agent.Owner, id string) (sessionJSON, error) {
	row, err := h.session(ctx, owner, id)
	if err != nil {
		return sessionJSON{}, err
	}
	view, err := h.Log.Timeline(ctx, owner, id, 0)
	if err != nil {
		return sessionJSON{}, noSession(err, id)
	}
	state, err := h.Log.State(ctx, owner, id)
	if err != nil {
		return sessionJSON{}, noSession(err, id)
	}
	out := sessionOf(row, state)
	out.Events, err = h.withReplies(ctx, owner, view)
	return out, err
}

func (h *Handler) createSession(w http.ResponseWriter, r *http.Request) {
	out, err := h.create(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	web.JSON(w, http.StatusOK, out)
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) (sessionJSON, error) {
	owner, err := h.owner(r)
	if err != nil {
		return sessionJSON{}, err
	}
	if _, err := h.app(r); err != nil {
		return sessionJSON{}, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return sessionJSON{}, err
	}
	id, state, events, err := decodeCreate(body, r.PathValue("session"))
	if err != nil {
		return sessionJSON{}, err
	}
	row := session.Session{Owner: owner, ID: id, WorkflowID: h.Starter.WorkflowID(owner, id), Initial: state}
	switch err := h.Log.Create(r.Context(), row, events...); {
	case errors.Is(err, session.ErrExists):
		return sessionJSON{}, web.Refusal(http.StatusConflict, "session %s exists already", id)
	case err != nil:
		return sessionJSON{}, fmt.Errorf("create session: %w", err)
	}
	return h.load(r.Context(), owner, id)
}

// decodeCreate reads the body of a create request: nothing, {sessionId, state, events}, or the bare state that ADK's
// deprecated route takes.
func decodeCreate(body json.RawMessage, id string) (string, map[string]any, []session.NewEvent, error) {
	in, err := object(body)
	if err != nil {
		return "", nil, nil, invalid("the body is not a JSON object: %v", err)
	}
	state := map[string]any{}
	raw := in["state"]
	for key := range in {
		if key != "state" && key != "sessionId" && key != "events" && id != "" {
			raw = body // a bare state
		}
	}
	if err := decode(raw, &state); err != nil {
		return "", nil, nil, invalid("state is not an object")
	}
	if id == "" {
		if err := decode(in["sessionId"], &id); err != nil {
			return "", nil, nil, invalid("sessionId is not a string")
		}
	}
	if id == "" {
		id = uuid.NewString()
	}
	if err := agent.CheckID("session", id); err != nil {
		return "", nil, nil, invalid("%v", err)
	}
	if state, err = clientState("state", state); err != nil {
		return "", nil, nil, err
	}
	events, err := decodeEvents(in["events"])
	return id, state, events, err
}

// clientState refuses what clients may not write, and drops what would not outlive the request.
func clientState(field string, state map[string]any) (map[string]any, error) {
	if len(state) > maxStateKeys {
		return nil, invalid("%s has %d keys, at most %d are taken at once", field, len(state), maxStateKeys)
	}
	for key := range state {
		if len(key) > maxStateKey {
			return nil, invalid("%s: key %q… is %d bytes long, at most %d are allowed", field, key[:32], len(key), maxStateKey)
		}
		if strings.HasPrefix(key, session.ScopeApp) {
			return nil, invalid("%s: key %q belongs to the app, not to a client", field, key)
		}
	}
	return session.ClientDelta(state), nil
}

func (h *Handler) deleteSession(w http.ResponseWriter, r *http.Request) {
	owner, err := h.owner(r)
	if err == nil {
		err = h.remove(r.Context(), owner, r.PathValue("session"))
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	web.JSON(w, http.StatusOK, nil)
}

// remove cancels what may run before the rows go: a run without its rows could only fail.
func (h *Handler) remove(ctx context.Context, owner agent.Owner, id string) error {
	row, err := h.session(ctx, owner, id)
	if err != nil {
		return err
	}
	if row.Definition != "" && !row.Closed {
		if err := h.Canceller.Cancel(ctx, row, ""); err != nil {
			return fmt.Errorf("cancel before delete: %w", err)
		}
		if err := h.awaitClosed(ctx, owner, id); err != nil {
			return err
		}
	}
	if err := h.Log.Delete(ctx, owner, id); err != nil {
		return noSession(err, id)
	}
	return nil
}

// awaitClosed gives the run a moment to write its end down. Without a worker it will not, and the rows go all the same.
func (h *Handler) awaitClosed(ctx context.Context, owner agent.Owner, id string) error {
	wait := h.CancelWait
	if wait <= 0 {
		wait = 2 * time.Second
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		row, err := h.Log.Session(ctx, owner, id)
		if err != nil {
			return noSession(err, id)
		}
		if row.Closed {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("delete session: %w", ctx.Err())
		case <-over.C:
			return nil
		case <-look.C:
		}
	}
}
