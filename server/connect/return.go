package connect

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tarry/auth"
	"tarry/server/web"
)

// ticketPrefix tells our tickets from a provider's codes, which clients must not send.
const ticketPrefix = "tarry-ticket-"

// NewTicket makes what an ADK client gets in place of a code. It grants nothing and need not be remembered: sending it
// back acknowledges that the person is done, and no more.
func NewTicket() string { return ticketPrefix + strings.ToLower(rand.Text()) }

// IsTicket says whether a client's code is one of our tickets.
func IsTicket(code string) bool {
	rest, ok := strings.CutPrefix(code, ticketPrefix)
	return ok && len(rest) == len(rand.Text()) && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func checkReturn(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("is no URL")
	}
	if !webAddress(address) || u.Fragment != "" {
		return errors.New("must be http or https, with a host and without user or fragment")
	}
	return nil
}

// allowedReturn is the return address that a client asked for, if it is on the list, else "".
func (h *Handler) allowedReturn(values url.Values) string {
	address, ok := single(values, "redirect_uri")
	if !ok || !slices.Contains(h.returnTo, address) {
		return ""
	}
	return address
}

// sendBack returns the browser to an ADK client, which looks at code and state only, whatever the outcome was.
func (h *Handler) sendBack(w http.ResponseWriter, r *http.Request, back, correlator string) {
	u, err := url.Parse(back)
	if err != nil { // the list was checked at start
		h.fail(w, r, err, "", false)
		return
	}
	query := u.Query()
	query.Set("code", NewTicket())
	query.Set("state", correlator)
	u.RawQuery = query.Encode()
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", u.String())
	w.WriteHeader(http.StatusSeeOther)
}

// keepReturn remembers the address in the browser while it is at the provider. It is kept by correlator, which requests
// that share a link share: another of them may have taken the login over when the browser comes back.
func (h *Handler) keepReturn(w http.ResponseWriter, correlator, back string) {
	value := base64.RawURLEncoding.EncodeToString([]byte(back))
	h.cookies.Set(w, returnCookie(correlator), auth.NewSecret(value), flowLife)
}

// takeReturn returns the remembered address, checked against the list again: a cookie is only what a browser says.
func (h *Handler) takeReturn(w http.ResponseWriter, r *http.Request, correlator string) string {
	name := returnCookie(correlator)
	value := h.cookies.Value(r, name)
	if correlator == "" || value.IsZero() {
		return ""
	}
	h.cookies.Clear(w, name)
	back, err := base64.RawURLEncoding.DecodeString(value.Reveal())
	if err != nil || !slices.Contains(h.returnTo, string(back)) {
		return ""
	}
	return string(back)
}

func returnCookie(correlator string) string {
	sum := sha256.Sum256([]byte(correlator))
	return "tarry-return-" + hex.EncodeToString(sum[:8])
}
