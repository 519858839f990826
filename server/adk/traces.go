package adk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/trace"
	"tarry/server/web"
	"tarry/session"
)

// Finder finds sessions whose owner a path does not name. It asks nobody whether they may be told.
type Finder interface {
	// SessionOfEvent returns the session that has an event, or [session.ErrNotFound].
	SessionOfEvent(ctx context.Context, event string) (session.Session, error)
	// SessionsCalled lists sessions by their id, newest first; of all apps where app is empty.
	SessionsCalled(ctx context.Context, app, id string, limit int) ([]session.Session, error)
	// SessionRequests lists what was asked in a session, newest first.
	SessionRequests(ctx context.Context, s session.Session, limit int) ([]auth.Request, error)
}

const (
	// me stands for the caller's own user id.
	me = "me"
	// maxCalled bounds the sessions of one id among which the caller's is looked for.
	maxCalled = 100
	// maxWaits bounds the waits of a trace.
	maxWaits = 1000
)

// sessionTrace answers with the spans of a session; query invocation picks one invocation.
func (h *Handler) sessionTrace(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("session")
	row, err := h.find(r, r.PathValue("app"), id)
	if err != nil {
		h.fail(w, r, noSession(err, brief(id)))
		return
	}
	source, err := h.source(r.Context(), row)
	if err != nil {
		h.fail(w, r, noSession(err, row.ID))
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, source.Spans(r.URL.Query().Get("invocation")))
}

// eventTrace answers with the span of an event, its attributes beside the rest.
func (h *Handler) eventTrace(w http.ResponseWriter, r *http.Request) {
	out, err := h.traced(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, out)
}

func (h *Handler) traced(r *http.Request) (map[string]any, error) {
	id := r.PathValue("event")
	none := notFound("there is no trace of event %s", brief(id))
	if agent.CheckID("event", id) != nil { // a database may refuse to look for it
		return nil, none
	}
	row, err := h.Find.SessionOfEvent(r.Context(), id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, none
	case err != nil:
		return nil, fmt.Errorf("session of event: %w", err)
	}
	if app := r.PathValue("app"); app != "" && app != row.Owner.App || !h.may(r, row.Owner) {
		return nil, none
	}
	source, err := h.source(r.Context(), row)
	if err != nil {
		return nil, noSession(err, row.ID)
	}
	span, ok := source.Event(id)
	if !ok {
		return nil, none
	}
	return span.Flat(), nil
}

func (h *Handler) source(ctx context.Context, row session.Session) (trace.Source, error) {
	out := trace.Source{Session: row.ID, Now: time.Now()}
	var err error
	if out.Events, err = h.Log.Timeline(ctx, row.Owner, row.ID, 0); err != nil {
		return out, fmt.Errorf("trace: %w", err)
	}
	if out.Requests, err = h.Find.SessionRequests(ctx, row, maxWaits); err != nil {
		return out, fmt.Errorf("trace: %w", err)
	}
	out.Definition, err = h.pinned(ctx, row)
	return out, err
}

// pinned is the definition that a session runs, nil before its first message.
func (h *Handler) pinned(ctx context.Context, row session.Session) (*agent.Definition, error) {
	if row.Definition == "" {
		return nil, nil //nolint:nilnil // there is none yet
	}
	d, err := h.Apps.Definition(ctx, row.Definition)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("definition: %w", err)
	}
	return d, nil
}

// may says whether the caller may act for an owner.
func (h *Handler) may(r *http.Request, owner agent.Owner) bool {
	got, err := h.Owner(r, owner.App, owner.User)
	return err == nil && got == owner
}

// find is the caller's session of that id: the newest one of the caller's own user, or of one that the caller may act for. Those
// of others are not there.
func (h *Handler) find(r *http.Request, app, id string) (session.Session, error) {
	if agent.CheckID("session", id) != nil || app != "" && agent.CheckID("app", app) != nil {
		return session.Session{}, session.ErrNotFound
	}
	apps := []string{app}
	if app == "" {
		definitions, err := h.Apps.Apps(r.Context())
		if err != nil {
			return session.Session{}, fmt.Errorf("list apps: %w", err)
		}
		apps = nil
		for _, d := range definitions {
			apps = append(apps, d.App)
		}
	}
	var found session.Session
	for _, app := range apps {
		owner, err := h.Owner(r, app, me)
		if err != nil {
			continue
		}
		row, err := h.Log.Session(r.Context(), owner, id)
		switch {
		case errors.Is(err, session.ErrNotFound):
		case err != nil:
			return row, fmt.Errorf("find session: %w", err)
		case found.ID == "" || row.Created.After(found.Created):
			found = row
		}
	}
	if found.ID != "" {
		return found, nil
	}
	rows, err := h.Find.SessionsCalled(r.Context(), app, id, maxCalled)
	if err != nil {
		return found, fmt.Errorf("find session: %w", err)
	}
	for _, row := range rows {
		if h.may(r, row.Owner) {
			return row, nil
		}
	}
	return found, session.ErrNotFound
}
