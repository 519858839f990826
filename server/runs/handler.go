package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/stream"
	"tarry/server/web"
	"tarry/session"
)

// Apps lists what can be run.
type Apps interface {
	Apps(ctx context.Context) ([]*agent.Definition, error)
}

// Starter says what a new session runs.
type Starter interface {
	// Definition returns the hash of the app's current definition, or [session.ErrNotFound].
	Definition(ctx context.Context, app string) (string, error)
	// WorkflowID is the id of the workflow that a session has or will have.
	WorkflowID(owner agent.Owner, session string) string
}

// Canceller stops runs.
type Canceller interface {
	// Cancel cancels an invocation, or with an empty one the session. A workflow that is not there is no error.
	Cancel(ctx context.Context, s session.Session, invocation string) error
	// CancelCall cancels one tool call that has no result yet.
	CancelCall(ctx context.Context, s session.Session, call string) error
}

// Histories fetches Temporal histories.
type Histories interface {
	// History returns the history of a run as JSON, or [session.ErrNotFound]. An empty run id means the workflow's latest run.
	History(ctx context.Context, workflowID, runID string) ([]byte, error)
}

// Lists are read in pages. [auth.ErrCursor] when a query's After is not a cursor; next is empty on the last page.
type Lists interface {
	SessionPage(ctx context.Context, user string, apps []string, q auth.PageQuery) (page []session.Session, next string, err error)
	RequestPage(ctx context.Context, user string, apps []string, q auth.PageQuery) (page []auth.Request, next string, err error)
	// OpenRequests are what sessions wait for.
	OpenRequests(ctx context.Context, workflowIDs []string) ([]auth.Request, error)
}

// Handler serves the API. All fields without a stated default must be set.
type Handler struct {
	Log       session.Log
	Apps      Apps
	Starter   Starter
	Canceller Canceller
	Histories Histories
	Lists     Lists
	// Partials is read for streams that ask for pieces of answers.
	Partials session.Partials
	Requests stream.Requests
	// Confirmations takes approvals.
	Confirmations Confirmations
	Answers       Answers
	Keys          Keys
	// Owner authorizes the caller of r for a user of an app, which a path or query names. A [web.RequestError] is answered
	// as it says, any other error with 403.
	Owner func(r *http.Request, app, user string) (agent.Owner, error)
	// Wake tells the outbox's dispatcher that there is something to deliver.
	Wake func()
	// PublicURL is where people reach this server.
	PublicURL string
	Logger    *slog.Logger
	// Poll and Heartbeat are those of [stream.Options]; 0 means its defaults.
	Poll      time.Duration
	Heartbeat time.Duration
}

// Mount adds the routes to mux.
func (h *Handler) Mount(mux *http.ServeMux) {
	const user, one = "/apps/{app}/users/{user}", "/apps/{app}/users/{user}/sessions/{session}"
	mux.HandleFunc("GET /runs", web.Answer(h.Logger, http.StatusOK, h.list))
	mux.HandleFunc("GET /logins", web.Answer(h.Logger, http.StatusOK, h.logins))
	mux.HandleFunc("POST "+user+"/runs", web.Answer(h.Logger, http.StatusAccepted, h.start))
	mux.HandleFunc("GET "+one+"/status", web.Answer(h.Logger, http.StatusOK, h.status))
	mux.HandleFunc("GET "+one+"/events", h.events)
	mux.HandleFunc("POST "+one+"/cancel", web.Answer(h.Logger, http.StatusAccepted, h.cancel))
	mux.HandleFunc("POST "+one+"/calls/{call}/cancel", web.Answer(h.Logger, http.StatusAccepted, h.cancelCall))
	mux.HandleFunc("POST "+one+"/confirmations/{request}", web.Answer(h.Logger, http.StatusOK, h.confirm))
	mux.HandleFunc("POST "+one+"/inputs/{request}", web.Answer(h.Logger, http.StatusOK, h.answer))
	mux.HandleFunc("POST "+one+"/keys/{request}", web.Answer(h.Logger, http.StatusOK, h.key))
	mux.HandleFunc("POST "+one+"/calls/{call}/result", web.Answer(h.Logger, http.StatusOK, h.result))
	mux.HandleFunc("GET "+one+"/history", h.history)
}

func (h *Handler) owner(r *http.Request, app, user string) (agent.Owner, error) {
	owner, err := h.Owner(r, app, user)
	var known *web.RequestError
	switch {
	case err == nil:
		return owner, nil
	case errors.As(err, &known):
		return owner, known
	case errors.Is(err, agent.ErrInvalidOwner):
		return owner, web.Refusal(http.StatusBadRequest, "%v", err)
	}
	return owner, &web.RequestError{Status: http.StatusForbidden, Text: "the caller may not act for this user of this app", Err: err}
}

// session finds the session of the path.
func (h *Handler) session(r *http.Request) (session.Session, error) {
	owner, err := h.owner(r, r.PathValue("app"), r.PathValue("user"))
	if err != nil {
		return session.Session{}, err
	}
	row, err := h.Log.Session(r.Context(), owner, r.PathValue("session"))
	if err != nil {
		return session.Session{}, noSession(err, r.PathValue("session"))
	}
	return row, nil
}

func noSession(err error, id string) error {
	if errors.Is(err, session.ErrNotFound) {
		return web.Refusal(http.StatusNotFound, "session %s does not exist; GET /runs?all=true&user=… lists those that do", id)
	}
	return fmt.Errorf("session: %w", err)
}

// owners are whom a listing is about: the user that it names, in the app that it names or in all.
func (h *Handler) owners(r *http.Request) ([]agent.Owner, error) {
	q := r.URL.Query()
	user := q.Get("user")
	if user == "" {
		return nil, web.Refusal(http.StatusBadRequest, "the query parameter user is missing")
	}
	if app := q.Get("app"); app != "" {
		owner, err := h.owner(r, app, user)
		return []agent.Owner{owner}, err
	}
	definitions, err := h.Apps.Apps(r.Context())
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	var out []agent.Owner
	for _, d := range definitions {
		owner, err := h.owner(r, d.App, user)
		if err != nil {
			return nil, err
		}
		out = append(out, owner)
	}
	return out, nil
}

const defaultLimit = 50
