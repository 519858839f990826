package demo

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	grantDevice = "urn:ietf:params:oauth:grant-type:device_code"
	deviceTTL   = 10 * time.Minute
)

// device is a login on another device (RFC 8628).
type device struct {
	client   string
	userCode string
	grant    *grant
	decided  bool
	denied   bool
	used     bool
	expires  time.Time
	polled   time.Time
	every    time.Duration
}

// DeviceURL is the device authorization endpoint.
func (p *Provider) DeviceURL() string { return p.endpoint("/device_authorization") }

// deviceAuthorization is RFC 8628 section 3.1.
func (p *Provider) deviceAuthorization(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil || repeated(r.PostForm) {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	form := r.PostForm
	p.mu.Lock()
	defer p.mu.Unlock()
	note(w, form, "")
	client, ok := p.authenticate(r, form)
	scopes := strings.Fields(form.Get("scope"))
	known := append(slices.Clone(p.cfg.Scopes), identityScopes()...)
	switch {
	case !ok:
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(known, s) }):
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_scope"})
		return
	}
	code, user := p.mint("dc"), "UC-"+rand.Text()[:8]
	every := p.faults.DeviceInterval
	if every <= 0 {
		every = time.Second
	}
	p.devices[code] = &device{
		client: client.ID, userCode: user, expires: p.now().Add(deviceTTL), every: every,
		grant: &grant{clientID: client.ID, resource: form.Get("resource"), scopes: scopes, person: true},
	}
	p.journal.secrets.DeviceCodes = append(p.journal.secrets.DeviceCodes, code)
	page := p.url + p.prefix() + "/device"
	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": user, "verification_uri": page, "verification_uri_complete": page + "?" + url.Values{"user_code": {user}}.Encode(),
		"expires_in": int64(deviceTTL / time.Second), "interval": every.Seconds(),
	})
}

// devicePage is where a person would enter the code; [Provider.DecideDevice] does so for tests.
func (p *Provider) devicePage(w http.ResponseWriter, _ *http.Request) {
	p.errorPage(w, http.StatusOK, "Enter your code", "Codes are entered by the demo's tests.")
}

// DecideDevice is user entering a code and deciding; false for a code that nobody waits for.
func (p *Provider) DecideDevice(userCode, user string, approve bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if d.userCode == userCode && !d.decided && p.now().Before(d.expires) {
			d.decided, d.denied, d.grant.user = true, !approve, user
			return true
		}
	}
	return false
}

// redeemDevice is RFC 8628 section 3.5. The mutex is held.
func (p *Provider) redeemDevice(client Client, form url.Values) tokenAnswer {
	d, ok := p.devices[form.Get("device_code")]
	bad := func(code string) tokenAnswer { return tokenError(http.StatusBadRequest, code, "device code") }
	now := p.now()
	if !ok || d.client != client.ID || d.used {
		return bad("invalid_grant")
	}
	early := now.Sub(d.polled) < d.every
	d.polled = now
	switch {
	case !now.Before(d.expires):
		return bad("expired_token")
	case early:
		d.every += 5 * time.Second
		return bad("slow_down")
	case !d.decided:
		return bad("authorization_pending")
	case d.denied:
		return bad("access_denied")
	}
	if answer, bad := p.resourceDiffers(d.grant, form); bad {
		return answer
	}
	d.used = true
	return p.issue(client, d.grant, d.grant.scopes, true)
}
