package demo

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// authorize is RFC 6749 section 4.1.1 as OAuth 2.1 has it.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	note(w, q, "")
	p.mu.Lock()
	p.journal.counts.Authorize++
	p.journal.secrets.States = appendNew(p.journal.secrets.States, q.Get("state"))
	client, known := p.clients[q.Get("client_id")]
	f := p.faults
	p.mu.Unlock()

	// Until client and redirect URI are proven, an error goes to the person and never to the URI (RFC 6749
	// section 4.1.2.1): this endpoint would be an open redirector.
	if !known {
		p.errorPage(w, http.StatusBadRequest, "Unknown application", "The application that sent you here is not registered.")
		return
	}
	if !slices.Contains(client.RedirectURIs, q.Get("redirect_uri")) {
		p.errorPage(w, http.StatusBadRequest, "Unknown return address", "The application asked to return to an address that it has not registered.")
		return
	}
	a := &authorization{
		id: randomID(), client: client, redirectURI: q.Get("redirect_uri"), state: q.Get("state"),
		challenge: q.Get("code_challenge"), resource: q.Get("resource"), nonce: q.Get("nonce"), scopes: strings.Fields(q.Get("scope")),
	}
	if code, why := p.checkAuthorize(q, f); code != "" {
		p.redirectError(w, r, a, code, why)
		return
	}
	if len(a.scopes) == 0 {
		a.scopes = p.scopes(f)
	}
	if f.AutoApprove != "" {
		p.approve(w, r, a, f.AutoApprove)
		return
	}
	p.mu.Lock()
	p.requests[a.id] = a
	user := p.sessions[p.browserID(r)]
	p.mu.Unlock()
	page := "/login"
	if user != "" && q.Get("prompt") != "login" {
		page = "/consent"
	}
	http.Redirect(w, r, p.prefix()+page+"?request="+a.id, http.StatusFound)
}

// checkAuthorize returns the error code and text for a request whose client and redirect URI are right.
func (p *Provider) checkAuthorize(q url.Values, f Faults) (code, why string) {
	for name, values := range q {
		// RFC 6749 section 3.1; several resources are legal (RFC 8707) but not here.
		if len(values) > 1 {
			return "invalid_request", "parameter " + name + " is repeated"
		}
	}
	challenge, method := q.Get("code_challenge"), q.Get("code_challenge_method")
	switch {
	case q.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code"
	case challenge == "" && !f.PKCEOptional:
		return "invalid_request", "code_challenge is missing"
	case challenge != "" && (method != "S256" || !s256Form().MatchString(challenge)):
		return "invalid_request", "code_challenge is not an S256 challenge"
	case f.RejectResource && q.Has("resource"):
		return "invalid_target", "resource is not supported"
	case !q.Has("resource") && !f.ResourceOptional && !slices.Contains(strings.Fields(q.Get("scope")), ScopeOpenID):
		return "invalid_target", "resource is missing"
	case q.Has("resource") && !isResource(q.Get("resource")):
		return "invalid_target", "resource is not an absolute URI without fragment"
	}
	known := append(slices.Clone(p.scopes(f)), identityScopes()...)
	for _, s := range strings.Fields(q.Get("scope")) {
		if !slices.Contains(known, s) {
			return "invalid_scope", "unknown scope"
		}
	}
	return "", ""
}

// s256Form is a SHA-256 in base64url, RFC 7636 section 4.2.
func s256Form() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`) }

func isResource(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.IsAbs() && u.Host != "" && !strings.Contains(raw, "#")
}

// approve issues a code for user and goes back to the client.
func (p *Provider) approve(w http.ResponseWriter, r *http.Request, a *authorization, user string) {
	p.mu.Lock()
	delete(p.requests, a.id)
	p.journal.counts.Approvals++
	scopes := a.scopes
	if p.faults.ReplaceScopes != nil {
		scopes = slices.Clone(p.faults.ReplaceScopes)
	}
	value := p.newCode(&code{
		grant:       &grant{user: user, clientID: a.client.ID, resource: a.resource, scopes: scopes, nonce: a.nonce, person: true},
		redirectURI: a.redirectURI, challenge: a.challenge, expires: p.now().Add(codeTTL),
	})
	p.mu.Unlock()
	p.redirectBack(w, r, a, url.Values{"code": {value}})
}

// redirectError is RFC 6749 section 4.1.2.1.
func (p *Provider) redirectError(w http.ResponseWriter, r *http.Request, a *authorization, code, why string) {
	note(w, r.URL.Query(), code)
	p.redirectBack(w, r, a, url.Values{"error": {code}, "error_description": {why}})
}

func (p *Provider) redirectBack(w http.ResponseWriter, r *http.Request, a *authorization, params url.Values) {
	f := p.Faults()
	if a.state != "" {
		params.Set("state", a.state)
	}
	switch {
	case f.Iss != "":
		params.Set("iss", f.Iss)
	case !f.NoIss:
		params.Set("iss", p.Issuer())
	}
	// A registered redirect URI may have a query of its own, which must stay (RFC 6749 section 3.1.2).
	target := a.redirectURI
	if strings.Contains(target, "?") {
		target += "&" + params.Encode()
	} else {
		target += "?" + params.Encode()
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, target, http.StatusSeeOther)
}
