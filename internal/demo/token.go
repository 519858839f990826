package demo

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantClient  = "client_credentials"
)

// tokenAnswer is a success or an error of the token endpoint.
type tokenAnswer struct {
	status int
	fields map[string]any
}

func tokenError(status int, code, why string) tokenAnswer {
	return tokenAnswer{status: status, fields: map[string]any{"error": code, "error_description": why}}
}

func (a tokenAnswer) errorCode() string {
	code, _ := a.fields["error"].(string)
	return code
}

// token is RFC 6749 section 3.2.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	err := r.ParseForm()
	form := r.PostForm
	grantType := form.Get("grant_type")
	p.mu.Lock()
	p.journal.counts.Token[grantType]++
	p.journal.secrets.Verifiers = appendNew(p.journal.secrets.Verifiers, form.Get("code_verifier"))
	onToken := p.onToken
	p.mu.Unlock()
	if onToken != nil {
		onToken(r.Context(), grantType)
	}

	var answer tokenAnswer
	switch {
	case err != nil:
		answer = tokenError(http.StatusBadRequest, "invalid_request", "form cannot be read")
	case repeated(form):
		answer = tokenError(http.StatusBadRequest, "invalid_request", "a parameter is repeated")
	default:
		answer = p.answer(r, form)
	}
	if answer.errorCode() == "" {
		p.holdBack(r.Context(), grantType)
	}
	note(w, form, answer.errorCode())
	p.echo(w, r, form, answer)
	p.writeToken(w, answer)
}

// answer decides and consumes in one step, so that of two equal requests one is the first.
func (p *Provider) answer(r *http.Request, form url.Values) tokenAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	grantType := form.Get("grant_type")
	switch {
	case p.faults.TokenFailures > 0:
		p.faults.TokenFailures--
		return tokenError(http.StatusServiceUnavailable, "temporarily_unavailable", "try again")
	case p.faults.TokenError != "":
		return tokenError(http.StatusBadRequest, p.faults.TokenError, "as configured")
	case p.faults.RefreshError != "" && grantType == grantRefresh:
		return tokenError(http.StatusBadRequest, p.faults.RefreshError, "as configured")
	}
	client, ok := p.authenticate(r, form)
	if !ok {
		return tokenError(http.StatusUnauthorized, "invalid_client", "client authentication does not fit the registration")
	}
	if (grantType == grantCode || grantType == grantRefresh) && !client.allows(grantType) {
		return tokenError(http.StatusBadRequest, "unauthorized_client", "grant type is not registered")
	}
	var answer tokenAnswer
	switch grantType {
	case grantCode:
		answer = p.redeemCode(client, form)
	case grantRefresh:
		answer = p.redeemRefresh(client, form)
	case grantDevice:
		answer = p.redeemDevice(client, form)
	case grantClient:
		answer = p.ownToken(client, form)
	default:
		return tokenError(http.StatusBadRequest, "unsupported_grant_type", "unknown grant_type")
	}
	if answer.errorCode() == "" {
		p.journal.counts.TokenOK[grantType]++
	}
	return answer
}

// authenticate is RFC 6749 section 2.3: exactly the registered method and no other. The mutex is held.
func (p *Provider) authenticate(r *http.Request, form url.Values) (Client, bool) {
	if form.Has("client_assertion") {
		if r.Header.Get("Authorization") != "" {
			return Client{}, false // two methods at once
		}
		return p.asserted(form)
	}
	id, secret, method := form.Get("client_id"), form.Get("client_secret"), AuthNone
	if form.Has("client_secret") {
		method = AuthPost
	}
	if user, pass, ok := r.BasicAuth(); ok {
		if method == AuthPost {
			return Client{}, false // two methods at once
		}
		// Both parts are form-encoded first (RFC 6749 section 2.3.1).
		u, err1 := url.QueryUnescape(user)
		s, err2 := url.QueryUnescape(pass)
		if err1 != nil || err2 != nil || (id != "" && id != u) {
			return Client{}, false
		}
		id, secret, method = u, s, AuthBasic
	} else if r.Header.Get("Authorization") != "" {
		return Client{}, false
	}
	c, known := p.clients[id]
	fits := known && c.AuthMethod == method && subtle.ConstantTimeCompare([]byte(c.Secret), []byte(secret)) == 1
	return c, fits
}

// echo makes an error answer as talkative as the faults say.
func (p *Provider) echo(w http.ResponseWriter, r *http.Request, form url.Values, answer tokenAnswer) {
	f := p.Faults()
	if answer.errorCode() == "" {
		return
	}
	if f.EchoErrors {
		said := form.Encode() + " " + r.Header.Get("Authorization")
		for _, field := range []string{"error_description", "error_uri", "debug"} {
			answer.fields[field] = said
		}
		w.Header().Set("X-Debug", said)
	}
	if secret := form.Get("code") + form.Get("refresh_token"); f.EchoCodes && secret != "" {
		answer.fields["error"] = secret
	}
}

// holdBack is the moment at which the code is gone and the client has nothing yet.
func (p *Provider) holdBack(ctx context.Context, grantType string) {
	p.mu.Lock()
	before, delay := p.before, p.faults.TokenDelay
	p.mu.Unlock()
	if before != nil {
		before(ctx, grantType)
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

func (p *Provider) writeToken(w http.ResponseWriter, answer tokenAnswer) {
	f := p.Faults()
	status := answer.status
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="token"`)
	}
	if f.ErrorWith200 && status < http.StatusInternalServerError {
		status = http.StatusOK
	}
	w.Header().Set("Pragma", "no-cache")
	if !f.FormEncoded {
		writeJSON(w, status, answer.fields)
		return
	}
	values := url.Values{}
	for k, v := range answer.fields {
		switch v := v.(type) {
		case string:
			values.Set(k, v)
		case int64:
			values.Set(k, strconv.FormatInt(v, 10))
		}
	}
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = strings.NewReader(values.Encode()).WriteTo(w) // the client is gone; nobody is left to tell
}

func repeated(form url.Values) bool {
	for _, v := range form {
		if len(v) > 1 {
			return true
		}
	}
	return false
}
