package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
	"tarry/internal/wiring"
	"tarry/server/connect"
	"tarry/server/signin"
	"tarry/server/web"
)

// parkedLife is how long a service may take to claim an answer. Codes live no longer than that (RFC 6749 section 4.1.2).
const parkedLife = 5 * time.Minute

// parked is a callback as it is sealed.
type parked struct {
	Digest  string `json:"digest"`
	State   string `json:"state"`
	Code    string `json:"code,omitempty"`
	Error   string `json:"error,omitempty"`
	Iss     string `json:"iss,omitempty"`
	HasIss  bool   `json:"has_iss,omitempty"`
	Cookie  string `json:"cookie"`
	Cookies string `json:"cookie_name"`
}

// Park implements connect.Logins: state and browser are proven now, the user by the claim.
func (l logins) Park(ctx context.Context, caller signin.Principal, answer connect.Callback) (string, error) {
	p := parked{Digest: answer.Digest, State: answer.State.Reveal(), Code: answer.Code.Reveal(), Error: answer.Error, Iss: answer.Iss, HasIss: answer.IssPresent}
	_, request, err := l.parts.Logins.Asked(ctx, p.State)
	if err != nil {
		return "", page(err)
	}
	err = l.parts.Logins.Check(ctx, caller.Access(), oauth.Callback{
		Digest: p.Digest, State: p.State, Code: p.Code,
		Cookies: func(name string) string {
			p.Cookies, p.Cookie = name, answer.Cookie(name).Reveal()
			return p.Cookie
		},
	})
	if err != nil {
		return "", page(err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("park callback: %w", err)
	}
	nonce := rand.Text() + rand.Text()
	sealed, err := l.parts.Vault.Seal(auth.NewSecret(string(body)), parkedAt(nonce, caller.Service)) //nolint:contextcheck // the vault looks for a new keyset in its own time
	if err != nil {
		return "", fmt.Errorf("park callback: %w", err)
	}
	if err := l.parts.Store.ParkCallback(ctx, hashed(nonce), caller.Service, hashed(p.State), sealed, parkedLife); err != nil {
		return "", fmt.Errorf("park callback: %w", err)
	}
	return caller.ReturnURL + "?" + url.Values{"nonce": {nonce}, "request": {request}}.Encode(), nil
}

func parkedAt(nonce, service string) vault.AD {
	return vault.AD{Row: hashed(nonce), Client: service, Column: "parked-callback"}
}

func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// claim exchanges a parked code, if it belongs to a login of the user whom the service has checked. A nonce is good for one try.
func (l logins) claim(w http.ResponseWriter, r *http.Request) {
	caller := signin.FromContext(r.Context())
	owner, err := caller.Owner(r.PathValue("app"), r.PathValue("user"))
	if err != nil || caller.Service == "" {
		web.Error(w, r, http.StatusForbidden, "only a service may claim a login, for a user of its own in an app of its list")
		return
	}
	var in struct {
		Nonce string `json:"nonce"`
	}
	const maxClaim = 4 << 10
	if err := web.Decode(r, &in, maxClaim); err != nil {
		web.Refuse(w, r, l.log, err)
		return
	}
	p, err := l.take(r.Context(), in.Nonce, caller.Service)
	if err != nil {
		l.refuse(w, r, err)
		return
	}
	result, err := l.Complete(r.Context(), func(o agent.Owner) bool { return o == owner }, connect.Callback{
		Digest: p.Digest, State: auth.NewSecret(p.State), Code: auth.NewSecret(p.Code), Error: p.Error, Iss: p.Iss, IssPresent: p.HasIss,
		Cookie: func(name string) auth.Secret {
			if name != p.Cookies {
				return auth.Secret{}
			}
			return auth.NewSecret(p.Cookie)
		},
	})
	if err != nil && !errors.Is(err, connect.ErrFinished) {
		l.refuse(w, r, err)
		return
	}
	if result.Change != nil {
		// The page that asks is for people who sign in here; for others their service has to ask.
		web.Error(w, r, http.StatusConflict, "the login is with another account than the one that is connected, which stays; delete that account first if it is to be replaced, and open the link again")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, struct {
		Request string      `json:"request"`
		Outcome auth.Status `json:"outcome"`
	}{result.RequestID, result.Outcome})
}

func (l logins) take(ctx context.Context, nonce, service string) (p parked, err error) {
	sealed, err := l.parts.Store.TakeCallback(ctx, hashed(nonce), service)
	if err != nil {
		return p, fmt.Errorf("claim login: %w", err)
	}
	plain, err := l.parts.Vault.Open(sealed, parkedAt(nonce, service)) //nolint:contextcheck // as above
	if err != nil {
		return p, fmt.Errorf("claim login: %w", err)
	}
	if err := json.Unmarshal([]byte(plain.Reveal()), &p); err != nil {
		return p, errors.New("claim login: parked callback does not fit")
	}
	return p, nil
}

func (l logins) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, auth.ErrSpent):
		web.Error(w, r, http.StatusNotFound, "the nonce is unknown, was used, or came too late; open the link again")
	case errors.Is(err, connect.ErrWrongUser), errors.Is(err, connect.ErrWrongBrowser):
		web.Error(w, r, http.StatusForbidden, "the login was asked of another user; nothing was exchanged, and the link is good for that user as before")
	case errors.Is(err, connect.ErrExpired), errors.Is(err, connect.ErrUnknown), errors.Is(err, connect.ErrCancelled):
		web.Error(w, r, http.StatusGone, "the login is over; open the link again if it still waits")
	case errors.Is(err, connect.ErrProvider):
		web.Error(w, r, http.StatusBadGateway, "the provider did not complete the login; open the link again")
	default:
		web.Refuse(w, r, l.log, err)
	}
}

// guests finds the users of services behind links and callbacks.
type guests struct{ parts *wiring.Parts }

var _ signin.Guests = guests{}

// OfRequest implements [signin.Guests]. Only logins are for browsers that have not signed in: what a person types is for the
// service's own pages. Nor are those on another device: they come back to no browser, so that there would be nothing for the
// service to claim, and whoever has the link could log in.
func (g guests) OfRequest(ctx context.Context, id string) (agent.Owner, bool) {
	r, err := g.parts.Store.Request(ctx, id, func(agent.Owner) bool { return true })
	if err != nil || !r.Need.Login() || r.Need.Typed != nil || r.Need.Device {
		return agent.Owner{}, false
	}
	return r.Owner, true
}

// OfState implements [signin.Guests].
func (g guests) OfState(ctx context.Context, state string) (agent.Owner, bool) {
	owner, _, err := g.parts.Logins.Asked(ctx, state)
	return owner, err == nil
}
