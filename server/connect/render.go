package connect

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"tarry/internal/form"
	"tarry/server/signin"
	"tarry/server/web"
)

//go:embed pages/*.html
var pageFiles embed.FS

// view is what the templates get.
type view struct {
	status int
	file   string
	// name is the asked person's, where they are the one who looks.
	name string

	web.Frame

	// of a message
	Lines     []string
	Role      string
	Again     string
	AgainText string

	// of a code for another device; Again is where it is entered
	Code     string
	Complete string
	// Still says that the page does not look for the answer by itself; Look is the one that does, or else the one that does not.
	Still bool
	Look  string

	// of the question
	Page     Page
	Action   string
	CSRF     string
	ReturnTo string
	// Change is what account.html asks.
	Change Change
	// Moved: the person confirmed a login elsewhere.
	Moved bool
	// Problem says what is wrong with the form that was sent; Wrong is the name of the control that it is about, or empty.
	Problem string
	Wrong   string
}

// Asked is who is asked.
func (v view) Asked() web.Who { return web.Who{Name: v.name, User: v.Page.User} }

// control is a field with what is wrong with it.
type control struct {
	form.Field

	Wrong bool
}

// Control is a field on the page.
func (v view) Control(f form.Field) control {
	return control{f, v.Wrong != "" && v.Wrong == f.Name}
}

// refuse shows the form again, with what is wrong with it.
func (v view) refuse(wrong *FormError) view {
	v.status, v.Problem, v.Wrong = http.StatusUnprocessableEntity, wrong.Text, wrong.Control
	v.Title = "Check your answer: " + v.Title
	return v
}

func parsePages() (*template.Template, error) {
	pages, err := web.Templates(pageFiles, template.FuncMap{"exact": exact})
	if err != nil {
		return nil, fmt.Errorf("connect pages: %w", err)
	}
	return pages, nil
}

func (h *Handler) say(m message, requestID string) view {
	v := view{status: m.status, file: "message.html", Frame: web.Frame{Title: m.title}, Lines: m.lines, Role: "status"}
	if m.alert {
		v.Role = "alert"
	}
	if m.again != "" && requestID != "" {
		v.Again, v.AgainText = h.Link(requestID), m.again
	}
	return v
}

func (h *Handler) question(page Page, token, back string) view {
	return view{
		status: http.StatusOK, file: "ask.html", Frame: web.Frame{Title: "Connect to " + page.ProviderHost},
		Page: page, Action: Path, CSRF: token, ReturnTo: back,
	}
}

// fail answers with the page for err, and logs what is not the caller's doing.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error, requestID string, open bool) {
	v := h.refusal(err, requestID, open)
	if v.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.log.ErrorContext(r.Context(), "login page failed", "err", err, "status", v.status, "request_id", web.RequestID(r.Context()))
	} else {
		h.log.InfoContext(r.Context(), "login page refused", "err", err, "status", v.status, "request_id", web.RequestID(r.Context()))
	}
	if v.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	h.show(w, r, v)
}

func (h *Handler) show(w http.ResponseWriter, r *http.Request, v view) {
	if caller := signin.FromContext(r.Context()); caller.User != "" && caller.User == v.Page.User {
		v.name = caller.Name
	}
	if v.status >= http.StatusBadRequest {
		v.Reference = web.RequestID(r.Context())
	}
	var body bytes.Buffer
	if err := h.pages.ExecuteTemplate(&body, v.file, v); err != nil {
		h.log.ErrorContext(r.Context(), "page not rendered", "err", err, "request_id", web.RequestID(r.Context()))
		web.Error(w, r, http.StatusInternalServerError, "internal error")
		return
	}
	web.PageHeaders(w.Header(), v.file != "message.html") // their answers redirect
	w.WriteHeader(v.status)
	_, _ = body.WriteTo(w) // the client is gone; nobody is left to tell
}
