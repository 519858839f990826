package demo

import (
	"crypto/hmac"
	"crypto/subtle"
	"net/http"
	"net/url"
)

// pending finds the authorization request that a page is about, or answers with an error page.
func (p *Provider) pending(w http.ResponseWriter, id string) (*authorization, bool) {
	p.mu.Lock()
	a, ok := p.requests[id]
	p.mu.Unlock()
	if !ok {
		p.errorPage(w, http.StatusBadRequest, "Nothing to approve", "This sign-in is over or was never started. Go back to the application.")
	}
	return a, ok
}

// submitted checks that a form was sent from a page of ours by the browser that got it.
func (p *Provider) submitted(w http.ResponseWriter, r *http.Request) (browser string, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		p.errorPage(w, http.StatusBadRequest, "Bad form", "The form could not be read.")
		return "", false
	}
	browser = p.browserID(r)
	p.mu.Lock()
	_, known := p.sessions[browser]
	p.mu.Unlock()
	want := p.csrf(browser, r.PostForm.Get("request"))
	if !known || !hmac.Equal([]byte(want), []byte(r.PostForm.Get("csrf_token"))) ||
		http.NewCrossOriginProtection().Check(r) != nil {
		p.errorPage(w, http.StatusForbidden, "Form refused", "The form was not sent from this site, or cookies are off.")
		return "", false
	}
	return browser, true
}

func (p *Provider) loginPage(w http.ResponseWriter, r *http.Request) {
	a, ok := p.pending(w, r.URL.Query().Get("request"))
	if !ok {
		return
	}
	browser := p.browserID(r)
	p.mu.Lock()
	_, known := p.sessions[browser]
	p.mu.Unlock()
	if !known {
		// Only then: another tab of this browser may be in the middle of its own sign-in.
		browser = p.newBrowser(w, "")
	}
	p.showLogin(w, http.StatusOK, browser, a, "", "")
}

func (p *Provider) showLogin(w http.ResponseWriter, status int, browser string, a *authorization, name, message string) {
	p.render(w, status, "login.html", page{
		Title: "Sign in", Request: a.id, CSRF: p.csrf(browser, a.id), Name: name, Message: message, Client: clientName(a.client),
	})
}

func (p *Provider) login(w http.ResponseWriter, r *http.Request) {
	browser, ok := p.submitted(w, r)
	if !ok {
		return
	}
	a, ok := p.pending(w, r.PostForm.Get("request"))
	if !ok {
		return
	}
	name := r.PostForm.Get("username")
	if _, ok := p.user(name, r.PostForm.Get("password")); !ok {
		p.showLogin(w, http.StatusUnauthorized, browser, a, name, "Name or password is wrong.")
		return
	}
	// A new cookie at sign-in: one that was planted before is worth nothing (session fixation).
	p.newBrowser(w, name)
	p.mu.Lock()
	delete(p.sessions, browser)
	p.journal.counts.Logins++
	p.mu.Unlock()
	http.Redirect(w, r, p.prefix()+"/consent?request="+a.id, http.StatusSeeOther)
}

func (p *Provider) consentPage(w http.ResponseWriter, r *http.Request) {
	a, ok := p.pending(w, r.URL.Query().Get("request"))
	if !ok {
		return
	}
	browser := p.browserID(r)
	user := p.signedIn(browser)
	if user == "" {
		http.Redirect(w, r, p.prefix()+"/login?request="+a.id, http.StatusFound)
		return
	}
	returnTo := ""
	if u, err := url.Parse(a.redirectURI); err == nil {
		returnTo = u.Host
	}
	p.render(w, http.StatusOK, "consent.html", page{
		Title: "Allow access?", Request: a.id, CSRF: p.csrf(browser, a.id), User: p.displayName(user),
		Client: clientName(a.client), ReturnTo: returnTo, Resource: a.resource, Scopes: scopeLines(a.scopes),
	})
}

func (p *Provider) consent(w http.ResponseWriter, r *http.Request) {
	browser, ok := p.submitted(w, r)
	if !ok {
		return
	}
	a, ok := p.pending(w, r.PostForm.Get("request"))
	if !ok {
		return
	}
	user := p.signedIn(browser)
	switch decision := r.PostForm.Get("decision"); {
	case user == "":
		p.errorPage(w, http.StatusForbidden, "Not signed in", "Sign in before you decide.")
	case decision == "approve":
		p.approve(w, r, a, user)
	case decision == "deny":
		p.mu.Lock()
		delete(p.requests, a.id)
		p.journal.counts.Denials++
		p.mu.Unlock()
		p.redirectError(w, r, a, "access_denied", "The person said no.")
	default:
		p.errorPage(w, http.StatusBadRequest, "No decision", "Choose one of the two buttons.")
	}
}

func (p *Provider) signedIn(browser string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[browser]
}

func (p *Provider) user(name, password string) (User, bool) {
	for _, u := range p.cfg.Users {
		if u.Name == name && subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1 {
			return u, true
		}
	}
	return User{}, false
}

func (p *Provider) displayName(name string) string {
	for _, u := range p.cfg.Users {
		if u.Name == name && u.DisplayName != "" {
			return u.DisplayName
		}
	}
	return name
}

func clientName(c Client) string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}
