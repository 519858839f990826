package adk

import (
	"errors"
	"fmt"
	"net/http"

	"tarry/agent"
	"tarry/server/stream"
	"tarry/server/web"
	"tarry/session"
)

func refuse(status int, format string, args ...any) error {
	return &web.RequestError{Status: status, Text: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return refuse(http.StatusBadRequest, format, args...)
}

func notFound(format string, args ...any) error {
	return refuse(http.StatusNotFound, format, args...)
}

// notAllowed is for what [Handler.Owner] says.
func notAllowed(err error) error {
	var own *web.RequestError
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, agent.ErrInvalidOwner):
		return invalid("%v", err)
	}
	return &web.RequestError{Status: http.StatusForbidden, Text: "the caller may not act for this user of this app", Err: err}
}

// noSession gives a missing session its name; other errors pass.
func noSession(err error, id string) error {
	if errors.Is(err, session.ErrNotFound) {
		return notFound("session %s does not exist", id)
	}
	return fmt.Errorf("session: %w", err)
}

// failure is an error on a stream; ADK's web UI shows error.
type failure struct {
	Error     string `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// fail answers with JSON. What a client may not read goes to the log, under the request id that it gets.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if status, text, show := h.explain(r, err); show {
		web.Error(w, r, status, text)
	}
}

// failSSE answers as a stream that has the error's status: ADK's web UI looks at the body only.
func (h *Handler) failSSE(w http.ResponseWriter, r *http.Request, err error) {
	if status, text, show := h.explain(r, err); show {
		h.frame(r, stream.NewWriter(w, status), text)
	}
}

func (h *Handler) frame(r *http.Request, out *stream.Writer, text string) {
	if err := out.Data("", failure{text, web.RequestID(r.Context())}); err != nil {
		h.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}

// explain says what to answer to err; show is false when the client is gone.
func (h *Handler) explain(r *http.Request, err error) (status int, text string, show bool) {
	if r.Context().Err() != nil {
		return 0, "", false
	}
	var known *web.RequestError
	if errors.As(err, &known) {
		return known.Status, known.Text, true
	}
	h.Logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", web.RequestID(r.Context()), "err", err)
	return http.StatusInternalServerError, "internal error; the server's log says more under this request id", true
}
