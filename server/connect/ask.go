package connect

import (
	"net/http"
	"net/url"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// maxID bounds request ids from outside, in bytes.
const maxID = 128

// ask renders the page of a request. Nothing begins here: mail scanners and link previews open links too.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request) {
	if h.inert(w, r) {
		return
	}
	if !h.canonical(r) {
		h.move(w, r)
		return
	}
	query := r.URL.Query()
	id, ok := single(query, "request")
	if !ok || id == "" || len(id) > maxID {
		h.fail(w, r, ErrUnknown, "", false)
		return
	}
	caller := signin.FromContext(r.Context())
	page, err := h.logins.Page(r.Context(), caller.Access(), id)
	if err != nil {
		h.fail(w, r, err, "", false)
		return
	}
	if caller.Mode == signin.ModeGuest { // who it is, only the service knows
		page.User = ""
	}
	back := h.allowedReturn(query)
	if h.answered(w, r, page, back) {
		return
	}
	if page.Key != nil {
		h.show(w, r, h.key(page, h.csrf.Token(w, r, page.RequestID, caller.Subject), back))
		return
	}
	if page.Confirmation != nil {
		h.show(w, r, h.confirmation(page, h.csrf.Token(w, r, page.RequestID, caller.Subject), back))
		return
	}
	if page.Question != nil {
		h.show(w, r, h.ofTool(page, h.csrf.Token(w, r, page.RequestID, caller.Subject), back))
		return
	}
	if page.Input {
		h.show(w, r, h.inputs(page, h.csrf.Token(w, r, page.RequestID, caller.Subject), back))
		return
	}
	if page.Device != nil {
		h.waiting(w, r, page, back)
		return
	}
	v := h.question(page, h.csrf.Token(w, r, page.RequestID, caller.Subject), back)
	v.Moved = query.Get("moved") != ""
	h.show(w, r, v)
}

// answered shows how a request has ended, or that it is about to; false when it waits.
func (h *Handler) answered(w http.ResponseWriter, r *http.Request, page Page, back string) bool {
	if page.Status == auth.StatusPending && !page.Deadline.IsZero() && !h.now().Before(page.Deadline) {
		page.Status = auth.StatusExpired // the row follows
	}
	switch {
	case page.Status == auth.StatusPending:
		return false
	case back != "" && !page.Status.Open():
		h.sendBack(w, r, back, page.Correlator)
	default:
		h.show(w, r, h.outcome(Result{Outcome: page.Status, RequestID: page.RequestID, App: page.App, Input: page.Input, Confirmation: page.Confirmation != nil, Key: page.Key != nil}, true))
	}
	return true
}

// inert answers requests that nobody looks at. 503 keeps a browser from showing the empty answer later, when the person
// does open the link.
func (h *Handler) inert(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method == http.MethodHead:
		web.PageHeaders(w.Header(), false)
		w.WriteHeader(http.StatusOK)
	case web.Prefetch(r):
		web.PageHeaders(w.Header(), false)
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		return false
	}
	return true
}

// single returns a parameter that stands at most once (RFC 6749 section 3.1); false when it is repeated.
func single(values url.Values, name string) (string, bool) {
	switch v := values[name]; len(v) {
	case 0:
		return "", true
	case 1:
		return v[0], true
	default:
		return "", false
	}
}
