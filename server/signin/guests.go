package signin

import (
	"context"
	"net/http"

	"tarry/agent"
)

// Guests says who is asked in a login. A user of a service has not signed in here: whoever has the link may open its page and go
// to the provider, and nothing comes of it before the service has claimed the answer for that user.
type Guests interface {
	// OfRequest returns whom a login request asks; false for any other id.
	OfRequest(ctx context.Context, id string) (agent.Owner, bool)
	// OfState returns whom the login asks that a provider's state belongs to.
	OfState(ctx context.Context, state string) (agent.Owner, bool)
}

// ModeGuest is the mode of a browser that a service has sent.
const ModeGuest = "guest"

// maxGuestForm bounds the form of a link's page, in bytes.
const maxGuestForm = 16 << 10

// guest is the principal of a browser that opens the page of a service's user, or comes back from the provider to it. It may act
// for that user, in what it asked for, and no further: on other pages it is nobody.
func (g *Gate) guest(w http.ResponseWriter, r *http.Request) (Principal, bool) {
	if g.Guests == nil || !g.sendsBack() {
		return Principal{}, false
	}
	var owner agent.Owner
	var ok bool
	switch {
	case r.URL.Path == "/connect" && r.Method == http.MethodGet:
		owner, ok = g.Guests.OfRequest(r.Context(), r.URL.Query().Get("request"))
	case r.URL.Path == "/connect" && r.Method == http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, maxGuestForm)
		if r.ParseForm() != nil {
			return Principal{}, false
		}
		owner, ok = g.Guests.OfRequest(r.Context(), r.PostForm.Get("request"))
	case localTarget(r.URL.RequestURI()) && r.PathValue("digest") != "" && r.Method == http.MethodGet:
		owner, ok = g.Guests.OfState(r.Context(), r.URL.Query().Get("state"))
	}
	if !ok {
		return Principal{}, false
	}
	for _, s := range g.Services {
		if s.ReturnURL != "" && s.Owns(owner) {
			p := NewPrincipal("user of "+s.Name, "guest "+owner.User, func(o agent.Owner) bool { return o == owner })
			p.Mode, p.Service, p.ReturnURL = ModeGuest, s.Name, s.ReturnURL
			return p, true
		}
	}
	return Principal{}, false
}

func (g *Gate) sendsBack() bool {
	for _, s := range g.Services {
		if s.ReturnURL != "" {
			return true
		}
	}
	return false
}
