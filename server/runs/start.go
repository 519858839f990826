package runs

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/server/web"
	"tarry/session"
	"tarry/wire"
)

// maxBody bounds what a caller sends: a task, or the name of an invocation.
const maxBody = 4 << 20

// start creates a session and posts its task. What is answered with 202 is stored: it runs, also when this process dies.
func (h *Handler) start(r *http.Request) (any, error) {
	owner, err := h.owner(r, r.PathValue("app"), r.PathValue("user"))
	if err != nil {
		return nil, err
	}
	in := Start{Mode: wire.ModeJob}
	if err := web.Decode(r, &in, maxBody); err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	hash, err := h.Starter.Definition(r.Context(), owner.App)
	if errors.Is(err, session.ErrNotFound) {
		return nil, web.Refusal(http.StatusNotFound, "app %s is not published by any worker; start one, or see GET /list-apps", owner.App)
	} else if err != nil {
		return nil, fmt.Errorf("definition of app: %w", err)
	}
	row := session.Session{Owner: owner, ID: in.Session, WorkflowID: h.Starter.WorkflowID(owner, in.Session), Mode: string(in.Mode)}
	if err := h.create(r, row); err != nil {
		return nil, err
	}
	m := session.Message{
		ID:         uuid.NewString(),
		Invocation: "e-" + uuid.NewString(),
		Event: session.Event{Author: agent.UserAuthor, Content: &genai.Content{
			Role: genai.RoleUser, Parts: []*genai.Part{{Text: in.Task}},
		}},
		Streaming: in.Streaming,
	}
	switch err := h.Log.Post(r.Context(), owner, in.Session, hash, string(in.Mode), m); {
	case errors.Is(err, session.ErrClosed):
		return nil, web.Refusal(http.StatusConflict, "session %s has ended; leave session out to create another", in.Session)
	case errors.Is(err, session.ErrFull):
		return nil, web.Refusal(http.StatusTooManyRequests, "%d messages of session %s wait for their turn; send more when some were answered", session.MaxQueued, in.Session)
	case err != nil:
		return nil, noSession(err, in.Session)
	}
	h.Wake()
	return Started{in.Session, m.Invocation}, nil
}

func (in *Start) check() error {
	if in.Task == "" {
		return web.Refusal(http.StatusBadRequest, "task is missing: say what the agent should do")
	}
	if in.Mode != wire.ModeJob && in.Mode != wire.ModeChat {
		return web.Refusal(http.StatusBadRequest, "mode is neither job nor chat")
	}
	if in.Session == "" {
		in.Session = uuid.NewString()
	}
	if err := agent.CheckID("session", in.Session); err != nil {
		return web.Refusal(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// create makes the session; a chat that is there already goes on.
func (h *Handler) create(r *http.Request, row session.Session) error {
	err := h.Log.Create(r.Context(), row)
	if err == nil {
		return nil
	}
	if !errors.Is(err, session.ErrExists) {
		return fmt.Errorf("create session: %w", err)
	}
	old, err := h.Log.Session(r.Context(), row.Owner, row.ID)
	if err != nil {
		return noSession(err, row.ID)
	}
	fresh := old.Definition == "" // created through ADK's API, and nothing said yet
	if !fresh && (old.Mode != string(wire.ModeChat) || row.Mode != string(wire.ModeChat)) {
		return web.Refusal(http.StatusConflict, "session %s exists already; leave session out to create another", row.ID)
	}
	return nil
}
