package runs

import (
	"errors"
	"fmt"
	"net/http"

	"tarry/server/web"
	"tarry/session"
)

func (h *Handler) status(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	open, err := h.openRequests(r.Context(), row)
	if err != nil {
		return nil, err
	}
	out := Status{Run: h.runOf(row, open)}
	if row.Invocation == "" {
		return out, nil
	}
	i, err := h.Log.Invocation(r.Context(), row.Owner, row.Invocation)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("invocation: %w", err)
	}
	out.InvocationStatus, out.Denied = i.Status, i.Denied
	view, err := h.Log.Timeline(r.Context(), row.Owner, row.ID, 0)
	if err != nil {
		return nil, noSession(err, row.ID)
	}
	for _, e := range view {
		if e.InvocationID == row.Invocation {
			out.fold(e)
			explain(out.WaitingFor, e)
			describe(out.WaitingFor, e)
		}
	}
	return out, nil
}

func (s *Status) fold(e *session.Record) {
	if e.ErrorMessage != "" {
		s.Error = e.ErrorMessage
	}
	if !e.Speaks() {
		return
	}
	if e.Kind == session.KindModel {
		s.ModelCalls++
	}
	s.ToolCalls += len(e.Calls())
	if e.Final() && e.Text() != "" && len(e.Calls()) == 0 {
		s.Answer = e.Text()
	}
}

// cancel asks the run to stop: the invocation that the body names, else whatever the session does, and no more of it.
func (h *Handler) cancel(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Invocation string `json:"invocation"`
	}
	if err := web.Decode(r, &in, maxBody); err != nil && !errors.Is(err, web.ErrNoBody) {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	if in.Invocation != "" {
		i, err := h.Log.Invocation(r.Context(), row.Owner, in.Invocation)
		if errors.Is(err, session.ErrNotFound) || (err == nil && i.Session != row.ID) {
			return nil, web.Refusal(http.StatusNotFound, "invocation %s is not one of session %s; its status names the current one", in.Invocation, row.ID)
		} else if err != nil {
			return nil, fmt.Errorf("invocation: %w", err)
		}
	}
	if !row.Closed && row.Definition != "" {
		if err := h.Canceller.Cancel(r.Context(), row, in.Invocation); err != nil {
			return nil, fmt.Errorf("cancel: %w", err)
		}
	}
	return map[string]string{"session": row.ID, "invocation": in.Invocation}, nil
}

// cancelCall asks the run to give up one tool call and to go on with the results of the others.
func (h *Handler) cancelCall(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("call")
	call, err := h.Log.Call(r.Context(), row, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, web.Refusal(http.StatusNotFound, "call %s is not one of session %s; its events name the calls (functionCall.id)", id, row.ID)
	case err != nil:
		return nil, fmt.Errorf("call: %w", err)
	case call.Answer != "":
		return nil, web.Refusal(http.StatusConflict, "call %s of tool %s has its result already; nothing is left to cancel", id, call.Name)
	}
	if err := h.Canceller.CancelCall(r.Context(), row, id); err != nil {
		return nil, fmt.Errorf("cancel call: %w", err)
	}
	return map[string]string{"session": row.ID, "call": id}, nil
}

// history answers the Temporal history as it is: ids, names and counts, no content. The query's run is the id of a run of the
// session, as the history of the run after it names it; without, it is the latest.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	row, err := h.session(r)
	if err != nil {
		web.Refuse(w, r, h.Logger, err)
		return
	}
	body, err := h.Histories.History(r.Context(), row.WorkflowID, r.URL.Query().Get("run"))
	switch {
	case errors.Is(err, session.ErrNotFound) && r.URL.Query().Get("run") != "":
		web.Refuse(w, r, h.Logger, web.Refusal(http.StatusNotFound, "session %s has no run %s, or its history is past its retention", row.ID, r.URL.Query().Get("run")))
		return
	case errors.Is(err, session.ErrNotFound):
		web.Refuse(w, r, h.Logger, web.Refusal(http.StatusNotFound, "session %s has no workflow: nothing was sent to it yet, or its history is past its retention", row.ID))
		return
	case err != nil:
		web.Refuse(w, r, h.Logger, fmt.Errorf("history: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := w.Write(body); err != nil { //nolint:gosec // it is Temporal's JSON, and no browser takes it for anything else
		h.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}
