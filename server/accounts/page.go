package accounts

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

//go:embed pages/*.html
var pageFiles embed.FS

const (
	// Path is the page's address.
	Path = "/accounts"

	csrfAbout = "accounts"

	maxForm  = 16 << 10 // bytes
	maxID    = 128      // bytes
	pageSize = 20       // accounts
)

// Pages serves the page of connected accounts: a list with buttons, behind the sign-in. Safe for concurrent use.
type Pages struct {
	origin      *url.URL
	connections Connections
	csrf        *web.CSRF
	page        *template.Template
	handler     *Handler
}

// NewPages makes the page that belongs to h's API. key signs form tokens: at least 32 bytes, shared by servers behind one name;
// the zero secret means a new one at each start.
func NewPages(h *Handler, publicURL *url.URL, key auth.Secret) (*Pages, error) {
	csrf, err := web.NewCSRF(key, web.Cookies{Secure: publicURL.Scheme == "https"})
	if err != nil {
		return nil, fmt.Errorf("accounts page: %w", err)
	}
	page, err := web.Templates(pageFiles, nil)
	if err != nil {
		return nil, fmt.Errorf("accounts page: %w", err)
	}
	origin := &url.URL{Scheme: publicURL.Scheme, Host: strings.ToLower(publicURL.Host)}
	return &Pages{origin: origin, connections: h.Connections, csrf: csrf, page: page, handler: h}, nil
}

// Mount adds the routes to mux behind signIn, the mode for forms: the handler of POST checks a CSRF token.
func (p *Pages) Mount(mux *http.ServeMux, signIn web.Middleware) {
	mux.Handle("GET "+Path, signIn(http.HandlerFunc(p.list)))
	mux.Handle("POST "+Path, signIn(http.HandlerFunc(p.disconnect)))
}

// view is what the template gets.
type view struct {
	web.Frame

	Who web.Who
	// Said is what the form before has done; Problem says that it was not all that was asked for.
	Said    string
	Problem bool
	// CSRF is one for all forms of the page: the first token of a browser sets its cookie.
	CSRF     string
	Accounts []Account
	More     string
	First    string
}

func (p *Pages) list(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Host, p.origin.Host) { // before a cookie is set on a name that is not ours
		web.PageHeaders(w.Header(), false)
		http.Redirect(w, r, p.origin.String()+Path, http.StatusFound)
		return
	}
	query, caller := r.URL.Query(), signin.FromContext(r.Context())
	user := query.Get("user")
	if user == "" {
		user = caller.User
	}
	if user == "" { // a service has users, and is none
		web.Refuse(w, r, p.handler.Logger, web.Refusal(http.StatusBadRequest, "name a user: %s?user=…", Path))
		return
	}
	user, err := mayRead(caller, "", user)
	if err != nil {
		web.Refuse(w, r, p.handler.Logger, err)
		return
	}
	page, err := p.connections.Accounts(r.Context(), Query{User: user, After: query.Get("after"), Limit: pageSize}, caller.Access())
	switch {
	case errors.Is(err, auth.ErrCursor):
		web.Refuse(w, r, p.handler.Logger, web.Refusal(http.StatusBadRequest, "this page of the list does not exist"))
		return
	case err != nil:
		web.Refuse(w, r, p.handler.Logger, fmt.Errorf("list accounts: %w", err))
		return
	}
	v := view{Frame: web.Frame{Title: "Connected accounts"}, Who: web.Who{User: user}, Accounts: page.Accounts, CSRF: p.csrf.Token(w, r, csrfAbout, user, caller.Subject)}
	if user == caller.User {
		v.Who.Name = caller.Name
	}
	v.Said, v.Problem = said(query.Get("done"))
	if page.Next != "" {
		v.More = p.address(url.Values{"user": {user}, "after": {page.Next}})
	}
	if query.Get("after") != "" {
		v.First = p.address(url.Values{"user": {user}})
	}
	var body bytes.Buffer
	if err := p.page.ExecuteTemplate(&body, "accounts.html", v); err != nil {
		web.Refuse(w, r, p.handler.Logger, fmt.Errorf("render page: %w", err))
		return
	}
	web.PageHeaders(w.Header(), true)
	_, _ = w.Write(body.Bytes()) // the client is gone; nobody is left to tell
}

func (p *Pages) address(query url.Values) string { return Path + "?" + query.Encode() }

// What the form has done, as the address of the page says it.
const (
	doneRevoked = "revoked"
	doneDeleted = "deleted"
	doneUntold  = "untold"
	doneGone    = "gone"
)

// said is a fixed text: anybody can make an address.
func said(done string) (text string, problem bool) {
	switch done {
	case doneRevoked:
		return "Disconnected. The provider has taken the access back.", false
	case doneDeleted:
		return "Removed here. The provider was not told: if it shows this access in your account there, you can remove it there too.", false
	case doneUntold:
		return "Disconnected here, but the provider could not be told. If it shows this access in your account there, remove it there too.", true
	case doneGone:
		return "This account was not connected any more.", false
	}
	return "", false
}

func (p *Pages) disconnect(w http.ResponseWriter, r *http.Request) {
	caller := signin.FromContext(r.Context())
	account, ok := p.form(w, r, caller)
	if !ok {
		web.Refuse(w, r, p.handler.Logger, web.Refusal(http.StatusForbidden, "This page is out of date, or was opened in another browser. Nothing was changed. Open it again, and allow cookies for this site."))
		return
	}
	owner, err := ownerOf(caller, account.App, account.User)
	if err != nil {
		web.Refuse(w, r, p.handler.Logger, err)
		return
	}
	tell := r.PostForm.Get("action") != "delete"
	done := doneDeleted
	switch out, err := p.connections.Disconnect(r.Context(), owner, account.ID, tell); {
	case errors.Is(err, ErrUnknown):
		done = doneGone
	case err != nil:
		web.Refuse(w, r, p.handler.Logger, fmt.Errorf("disconnect account: %w", err))
		return
	case tell && out.Revoked:
		done = doneRevoked
	case tell:
		done = doneUntold
	}
	web.PageHeaders(w.Header(), false)
	http.Redirect(w, r, p.address(url.Values{"user": {owner.User}, "done": {done}}), http.StatusSeeOther)
}

// form reads a form of ours; false when it is not from a page that this browser and person were shown.
func (p *Pages) form(w http.ResponseWriter, r *http.Request, caller signin.Principal) (a Account, ok bool) {
	if !strings.EqualFold(r.Host, p.origin.Host) || !web.ReadForm(w, r, p.origin.String(), maxForm) {
		return a, false
	}
	for name, to := range map[string]*string{"app": &a.App, "user": &a.User, "account": &a.ID} {
		values := r.PostForm[name]
		if len(values) != 1 || values[0] == "" || len(values[0]) > maxID {
			return a, false
		}
		*to = values[0]
	}
	token := r.PostForm["csrf"]
	return a, len(token) == 1 && p.csrf.Valid(r, token[0], csrfAbout, a.User, caller.Subject)
}
