package adk

import (
	"net/http"

	"tarry/agent"
	"tarry/server/web"
)

func (h *Handler) mountMemory(mux *http.ServeMux) {
	mux.HandleFunc("PATCH /apps/{app}/users/{user}/memory", h.patchMemory)
}

// patchMemory adds what was said in a session to its user's memory, in place of what was added of it before.
func (h *Handler) patchMemory(w http.ResponseWriter, r *http.Request) {
	web.Answer(h.Logger, http.StatusOK, func(r *http.Request) (any, error) {
		owner, err := h.owner(r)
		if err != nil {
			return nil, err
		}
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		in, err := object(body)
		if err != nil {
			return nil, invalid("the body is not a JSON object")
		}
		var id string
		if err := decode(in["sessionId"], &id); err != nil {
			return nil, invalid("sessionId is not a string")
		}
		if err := agent.CheckID("session", id); err != nil {
			return nil, invalid("sessionId: %v", err)
		}
		if err := h.Memory.Remember(r.Context(), owner, id); err != nil {
			return nil, noSession(err, id)
		}
		return nil, nil //nolint:nilnil // ADK answers null
	})(w, r)
}
