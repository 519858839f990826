package connect

import (
	"errors"
	"net/http"
	"strconv"

	"tarry/internal/form"
	"tarry/server/signin"
	"tarry/server/web"
)

// Input is one thing that a server wants of the person: to visit a URL, or to fill in a form.
type Input struct {
	// Message is the server's text.
	Message string
	// URL and Host are empty for a form. Unusual says that the host is not written as it reads (Punycode).
	URL     string
	Host    string
	Unusual bool
	// Fields have names that are unique on the page; see [ControlName].
	Fields []form.Field
}

// Answer is what the person did.
type Answer struct {
	Decline bool
	// Shown is the page's [Page.Shown], from the form: anything, or empty.
	Shown string
	// Values returns what was filled into a control.
	Values func(name string) []string
}

// FormError is a form that does not fit. Text is ours, with the field's title in it. Control is the name of the control that it
// is about, or empty.
type FormError struct{ Text, Control string }

// Error implements error.
func (e *FormError) Error() string { return "connect: form: " + e.Text }

// maxAnswer bounds a filled-in form, in bytes.
const maxAnswer = 256 << 10

// ControlName is the name of a field of the nth input, by its place in the form: browsers change some characters of names,
// and a server's names may have any.
func ControlName(n, field int) string { return "field-" + strconv.Itoa(n) + "-" + strconv.Itoa(field) }

// answer ends a request that is no login.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) {
	id, ok := h.form(w, r, maxAnswer)
	action, once := single(r.PostForm, "action")
	if !ok || !once || action != "accept" && action != "decline" {
		h.fail(w, r, errForm, "", false)
		return
	}
	caller := signin.FromContext(r.Context())
	back := h.allowedReturn(r.PostForm)
	values := func(name string) []string { return r.PostForm[name] }
	result, err := h.logins.Answer(r.Context(), caller.Access(), id, Answer{Decline: action == "decline", Shown: shown(r), Values: values})
	var wrong *FormError
	switch {
	case errors.As(err, &wrong):
		h.again(w, r, id, back, wrong)
	case err == nil || errors.Is(err, ErrFinished) && result.Outcome != "":
		if back != "" && !result.Outcome.Open() {
			h.sendBack(w, r, back, result.Correlator)
			return
		}
		h.show(w, r, h.outcome(result, err != nil))
	default:
		h.fail(w, r, err, id, result.Outcome.Open())
	}
}

// again shows the form with what was filled in, and what is wrong with it; or that the request was answered meanwhile.
func (h *Handler) again(w http.ResponseWriter, r *http.Request, id, back string, wrong *FormError) {
	caller := signin.FromContext(r.Context())
	page, err := h.logins.Page(r.Context(), caller.Access(), id)
	if err != nil {
		h.fail(w, r, err, "", false)
		return
	}
	if h.answered(w, r, page, back) {
		return
	}
	token := h.csrf.Token(w, r, page.RequestID, caller.Subject)
	if page.Key != nil { // with nothing filled in: no page shows a secret
		h.show(w, r, h.key(page, token, back).refuse(wrong))
		return
	}
	if page.Confirmation != nil {
		page.Confirmation.Payload = r.PostForm.Get(PayloadControl)
		h.show(w, r, h.confirmation(page, token, back).refuse(wrong))
		return
	}
	if q := page.Question; q != nil {
		q.Value = r.PostForm.Get(AnswerControl)
		for i := range q.Fields {
			q.Fields[i].Refill(r.PostForm[q.Fields[i].Name])
		}
		h.show(w, r, h.ofTool(page, token, back).refuse(wrong))
		return
	}
	for _, in := range page.Inputs {
		for i := range in.Fields {
			in.Fields[i].Refill(r.PostForm[in.Fields[i].Name])
		}
	}
	h.show(w, r, h.inputs(page, token, back).refuse(wrong))
}

func (h *Handler) inputs(page Page, token, back string) view {
	return view{
		status: http.StatusOK, file: "input.html", Frame: web.Frame{Title: page.ServerHost + " asks"}, Page: page, Action: AnswerPath, CSRF: token, ReturnTo: back,
	}
}
