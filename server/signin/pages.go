package signin

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"tarry/server/web"
)

//go:embed pages/*.html
var pageFiles embed.FS

// view is what the template gets.
type view struct {
	web.Frame

	Lines []string
	Alert bool
	Name  string
	User  string
	CSRF  string
	Again string
}

func parsePages() (*template.Template, error) {
	pages, err := web.Templates(pageFiles, nil)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	return pages, nil
}

func (p *people) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	var body bytes.Buffer
	if err := p.pages.ExecuteTemplate(&body, "signin.html", v); err != nil {
		p.log.ErrorContext(r.Context(), "page not rendered", "err", err, "request_id", web.RequestID(r.Context()))
		web.Error(w, r, http.StatusInternalServerError, "internal error")
		return
	}
	web.PageHeaders(w.Header(), v.CSRF != "") // sign-out may redirect to the provider
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client is gone; nobody is left to tell
}

// fail shows a fixed text; the cause goes to the log.
func (p *people) fail(w http.ResponseWriter, r *http.Request, status int, text string, err error) {
	id := web.RequestID(r.Context())
	if status >= http.StatusInternalServerError {
		p.log.ErrorContext(r.Context(), "sign-in failed", "err", err, "status", status, "request_id", id)
	} else {
		p.log.InfoContext(r.Context(), "sign-in refused", "err", err, "status", status, "request_id", id)
	}
	p.show(w, r, status, view{Frame: web.Frame{Title: "Not signed in", Reference: id}, Lines: []string{text}, Alert: true, Again: Path})
}

// status shows who is signed in.
func (p *people) status(w http.ResponseWriter, r *http.Request) {
	caller := FromContext(r.Context())
	p.show(w, r, http.StatusOK, view{Frame: web.Frame{Title: "Signed in"}, Name: caller.Name, User: caller.User, CSRF: p.csrf.Token(w, r, SignOutPath, caller.Subject)})
}

// signOut ends the session here and, where the provider has a page for it, there (OpenID Connect RP-Initiated Logout 1.0). The
// provider is told who we are, not whose session it was: its own cookie says that, and we keep no ID token.
func (p *people) signOut(w http.ResponseWriter, r *http.Request) {
	const maxForm = 4 << 10
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	caller := FromContext(r.Context())
	if r.ParseForm() != nil || !p.csrf.Valid(r, r.PostForm.Get("csrf"), SignOutPath, caller.Subject) {
		p.fail(w, r, http.StatusForbidden, "The form is not from a page that this browser was shown. You are still signed in.", nil)
		return
	}
	if err := p.Sessions.EndPersonSession(r.Context(), hash(p.cookies.Value(r, sessionCookie).Reveal())); err != nil {
		p.fail(w, r, http.StatusServiceUnavailable, "Sign-out is not available at the moment. You are still signed in.", err)
		return
	}
	p.cookies.Clear(w, sessionCookie)
	p.log.InfoContext(r.Context(), "signed out", "user", caller.User, "request_id", web.RequestID(r.Context()))
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", p.afterwards(r))
	w.WriteHeader(http.StatusSeeOther)
}

// afterwards is where a browser goes that has signed out.
func (p *people) afterwards(r *http.Request) string {
	found, err := p.issuer.discover(r.Context())
	if err != nil {
		return SignOutPath
	}
	u, err := url.Parse(found.more.EndSession)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopbackName(u.Hostname())) {
		return SignOutPath
	}
	query := u.Query()
	query.Set("client_id", p.ClientID)
	query.Set("post_logout_redirect_uri", p.public.JoinPath(SignOutPath).String())
	u.RawQuery = query.Encode()
	return u.String()
}

func (p *people) signedOut(w http.ResponseWriter, r *http.Request) {
	if _, _, no := p.caller(r); no == nil {
		web.PageHeaders(w.Header(), false)
		http.Redirect(w, r, Path, http.StatusSeeOther) // still signed in: the button is there
		return
	}
	p.show(w, r, http.StatusOK, view{Frame: web.Frame{Title: "Signed out"}, Lines: []string{"You are signed out of this server."}, Again: Path})
}
