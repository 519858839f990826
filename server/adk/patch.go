package adk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/google/uuid"

	"tarry/server/web"
	"tarry/session"
)

// sessionMetadata is the state key in which ADK's web UI keeps the name of a session.
const sessionMetadata = "__session_metadata__"

// patchSession writes state without running anything. Whatever runs beside it goes on with the state that it has.
func (h *Handler) patchSession(w http.ResponseWriter, r *http.Request) {
	out, err := h.patch(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	web.JSON(w, http.StatusOK, out)
}

func (h *Handler) patch(w http.ResponseWriter, r *http.Request) (sessionJSON, error) {
	owner, err := h.owner(r)
	if err != nil {
		return sessionJSON{}, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return sessionJSON{}, err
	}
	in, err := object(body)
	if err != nil {
		return sessionJSON{}, invalid("the body is not a JSON object")
	}
	if !present(in["stateDelta"]) {
		return sessionJSON{}, invalid("stateDelta is missing; it is an object with the keys to write")
	}
	var delta map[string]any
	if err := decode(in["stateDelta"], &delta); err != nil {
		return sessionJSON{}, invalid("stateDelta is not an object")
	}
	id := r.PathValue("session")
	row, err := h.session(r.Context(), owner, id)
	if err != nil {
		return sessionJSON{}, err
	}
	if delta, err = h.changes(r.Context(), row, delta); err != nil {
		return sessionJSON{}, err
	}
	if delta, err = clientState("stateDelta", delta); err != nil {
		return sessionJSON{}, err
	}
	event := session.Event{ID: uuid.NewString(), InvocationID: "p-" + uuid.NewString(), Actions: session.Actions{StateDelta: delta}}
	switch err := h.Log.Patch(r.Context(), owner, id, event); {
	case errors.Is(err, session.ErrLarge):
		return sessionJSON{}, web.Refusal(http.StatusRequestEntityTooLarge, "stateDelta: together with what was written before it would be more than %d bytes", session.MaxPatched)
	case err != nil:
		return sessionJSON{}, noSession(err, id)
	}
	return h.load(r.Context(), owner, id)
}

// changes leaves out what a new name for a session merely repeats: from its list of sessions, ADK's web UI sends all the state
// that it has seen along with the name, which would undo what runs have written since.
func (h *Handler) changes(ctx context.Context, row session.Session, delta map[string]any) (map[string]any, error) {
	if _, named := delta[sessionMetadata]; !named || len(delta) == 1 {
		return delta, nil
	}
	state, err := h.Log.State(ctx, row.Owner, row.ID)
	if err != nil {
		return nil, fmt.Errorf("patch session: %w", err)
	}
	out := map[string]any{}
	for key, value := range delta {
		repeats := func(state map[string]any) bool {
			seen, ok := state[key]
			return ok && reflect.DeepEqual(seen, value)
		}
		if key == sessionMetadata || !repeats(state) && !repeats(listed(row)) {
			out[key] = value
		}
	}
	return out, nil
}
