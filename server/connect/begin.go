package connect

import (
	"errors"
	"net/http"
	"net/url"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// maxForm bounds the form, in bytes.
const maxForm = 16 << 10

// errForm: the form is missing its token, or has one of another browser, request or person.
var errForm = errors.New("connect: form token")

// begin starts a flow and sends the browser to the provider.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) {
	id, ok := h.form(w, r, maxForm)
	if !ok {
		h.fail(w, r, errForm, "", false)
		return
	}
	caller := signin.FromContext(r.Context())
	back := h.allowedReturn(r.PostForm)
	var started Started
	err := h.unmoved(r, caller.Access(), id)
	if err == nil {
		started, err = h.logins.Begin(r.Context(), caller.Access(), id, shown(r))
	}
	switch {
	case errors.Is(err, ErrFinished), errors.Is(err, ErrMoved):
		// The page says how it ended, or sends the popup back; or it shows the new provider.
		link := h.Link(id)
		if errors.Is(err, ErrMoved) {
			link += "&moved=1"
		}
		if back != "" {
			link += "&" + url.Values{"redirect_uri": {back}}.Encode()
		}
		web.PageHeaders(w.Header(), false)
		http.Redirect(w, r, link, http.StatusSeeOther)
		return
	case err != nil:
		h.fail(w, r, err, id, !errors.Is(err, ErrExpired))
		return
	}
	if started.Device {
		link := h.Link(id)
		if back != "" {
			link += "&" + url.Values{"redirect_uri": {back}}.Encode()
		}
		web.PageHeaders(w.Header(), false)
		http.Redirect(w, r, link, http.StatusSeeOther)
		return
	}
	if !webAddress(started.RedirectURL) {
		h.fail(w, r, &MisconfiguredError{Text: "The provider's authorization endpoint is no web address."}, "", false)
		return
	}
	life := min(started.Expires.Sub(h.now()), flowLife)
	if life < 1 || !h.cookies.Set(w, started.CookieName, started.Cookie, life) {
		h.fail(w, r, ErrTryAgain, id, true)
		return
	}
	if back != "" {
		h.keepReturn(w, started.Correlator, back)
	}
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", started.RedirectURL)
	w.WriteHeader(http.StatusSeeOther)
}

// shown is the newest request that the page listed; a page of an earlier version does not say.
func shown(r *http.Request) string {
	id, once := single(r.PostForm, "shown")
	if !once || len(id) > maxID {
		return ""
	}
	return id
}

// unmoved compares the provider that the page showed with today's: another window may have begun the login and found that
// the server names another one by now, and nobody has seen that here.
func (h *Handler) unmoved(r *http.Request, access auth.Access, id string) error {
	provider, once := single(r.PostForm, "provider")
	if once && provider == "" { // a page of an earlier version
		return nil
	}
	page, err := h.logins.Page(r.Context(), access, id)
	if err == nil && page.Status.Open() && (!once || web.Host(page.ProviderHost) != provider) {
		return ErrMoved
	}
	return err //nolint:wrapcheck // one of the pages' errors
}

// form reads a form of ours and returns the request that it is about; false when it is not from a page that this browser
// and person were shown.
func (h *Handler) form(w http.ResponseWriter, r *http.Request, limit int64) (id string, ok bool) {
	if !h.canonical(r) || !web.ReadForm(w, r, h.origin.String(), limit) {
		return "", false
	}
	id, once := single(r.PostForm, "request")
	token, onceToken := single(r.PostForm, "csrf")
	ok = once && onceToken && id != "" && len(id) <= maxID && h.csrf.Valid(r, token, id, signin.FromContext(r.Context()).Subject)
	return id, ok
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
