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

func invalid(format string, args ...any) error {
	return web.Refusal(http.StatusBadRequest, format, args...)
}

func notFound(format string, args ...any) error {
	return web.Refusal(http.StatusNotFound, format, args...)
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
		return notFound("session %s does not exist", brief(id))
	}
	return fmt.Errorf("session: %w", err)
}

// fail answers with JSON. What a client may not read goes to the log, under the request id that it gets.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	web.Refuse(w, r, h.Logger, err)
}

// failSSE answers what failed before a stream began.
func (h *Handler) failSSE(w http.ResponseWriter, r *http.Request, err error) {
	web.FailStream(w, r, h.Logger, err)
}

func (h *Handler) frame(r *http.Request, out *stream.Writer, text string) {
	if err := out.Data("", web.FailureOf(r, 0, text)); err != nil {
		h.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}
