package adk

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/stream"
	"tarry/session"
)

// Apps lists what can be run.
type Apps interface {
	// App returns the current definition of an app, or [session.ErrNotFound].
	App(ctx context.Context, app string) (*agent.Definition, error)
	Apps(ctx context.Context) ([]*agent.Definition, error)
	// Definition returns a published definition by its hash, or [session.ErrNotFound].
	Definition(ctx context.Context, hash string) (*agent.Definition, error)
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
}

// Requests finds what people were asked.
type Requests interface {
	stream.Requests
	// Request returns a request that access allows.
	Request(ctx context.Context, id string, access auth.Access) (auth.Request, error)
}

// Confirmations takes what people say to calls that wait for their approval. Package auth/inputs has one.
type Confirmations interface {
	// Confirm ends an open request that access allows; [auth.ErrClosed] when it was not open any more.
	Confirm(ctx context.Context, access auth.Access, id string, confirmed bool, said auth.Consent) (auth.Request, error)
}

// Handler serves ADK's API. All fields without a stated default must be set.
type Handler struct {
	Log session.Log
	// Partials is read for clients that ask for streaming.
	Partials      session.Partials
	Apps          Apps
	Starter       Starter
	Canceller     Canceller
	Find          Finder
	Requests      Requests
	Confirmations Confirmations
	Answers       Answers
	Keys          Keys
	Artifacts     session.Artifacts
	Memory        session.Memory
	// Owner authorizes the caller of r for a user of an app, which a path or body names. A [web.RequestError] is answered as
	// it says, any other error with 403.
	Owner func(r *http.Request, app, user string) (agent.Owner, error)
	// Operator says whether the caller may read the prompts of apps; nil means that nobody may.
	Operator func(r *http.Request) bool
	// Wake tells the outbox's dispatcher that there is something to deliver.
	Wake func()
	// PublicURL is where people reach this server, without a slash at its end.
	PublicURL string
	// ReturnURLs are further addresses, exactly as they are, that the connect page sends people back to.
	ReturnURLs []string
	Version    string
	Logger     *slog.Logger
	// Poll and Heartbeat are those of [stream.Options]; 0 means its defaults.
	Poll      time.Duration
	Heartbeat time.Duration
	// CancelWait is how long deleting a session waits for its run to end; 0 means 2 s.
	CancelWait time.Duration
}

// Mount adds the routes to mux.
func (h *Handler) Mount(mux *http.ServeMux) {
	const sessions = "/apps/{app}/users/{user}/sessions"
	mux.HandleFunc("GET /health", h.health)
	mux.HandleFunc("GET /version", h.version)
	mux.HandleFunc("GET /list-apps", h.listApps)
	mux.HandleFunc("GET /apps/{app}/app-info", h.getAppInfo)
	mux.HandleFunc("GET "+sessions, h.listSessions)
	mux.HandleFunc("POST "+sessions, h.createSession)
	mux.HandleFunc("GET "+sessions+"/{session}", h.getSession)
	mux.HandleFunc("POST "+sessions+"/{session}", h.createSession)
	mux.HandleFunc("PATCH "+sessions+"/{session}", h.patchSession)
	mux.HandleFunc("DELETE "+sessions+"/{session}", h.deleteSession)
	mux.HandleFunc("POST /run", h.run)
	mux.HandleFunc("POST /run_sse", h.runSSE)
	h.mountArtifacts(mux)
	h.mountMemory(mux)
	h.mountDev(mux)
}

// owner authorizes the caller for the app and user of the path.
func (h *Handler) owner(r *http.Request) (agent.Owner, error) {
	return h.authorize(r, r.PathValue("app"), r.PathValue("user"))
}

func (h *Handler) authorize(r *http.Request, app, user string) (agent.Owner, error) {
	owner, err := h.Owner(r, app, user)
	if err != nil {
		return agent.Owner{}, notAllowed(err)
	}
	return owner, nil
}

func (h *Handler) publicURL() string { return strings.TrimRight(h.PublicURL, "/") }
