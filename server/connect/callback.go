package connect

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// Bounds on what a provider may send, in bytes.
const (
	maxDigest = 64
	maxState  = 512
	maxCode   = 8 << 10
	maxIss    = 2 << 10
)

// errAnswer: what came to the callback belongs to no login that was begun here.
var errAnswer = errors.New("connect: unknown answer")

// callback completes a flow.
func (h *Handler) callback(w http.ResponseWriter, r *http.Request) {
	if h.inert(w, r) {
		return
	}
	peer := h.peer(r)
	// Whatever page is open in a browser of this peer can use the limit up. It cannot bring a cookie of ours in the
	// background, and an answer without any belongs to no login; so those that have one are looked up all the same.
	if len(r.Cookies()) == 0 && h.limits.Spent(web.Callbacks, peer) {
		h.fail(w, r, ErrTooMany, "", false)
		return
	}
	answer, ok := parseCallback(r.PathValue("digest"), r.URL.RawQuery)
	if !ok {
		h.limits.Allow(web.Callbacks, peer)
		h.fail(w, r, errAnswer, "", false)
		return
	}
	// The flow's cookie is left to run out: a reload of this page, or a second callback that is under way, must still be
	// recognised as this browser's and shown the outcome. The flow itself is spent.
	answer.Cookie = func(name string) auth.Secret { return h.cookies.Value(r, name) }
	caller := signin.FromContext(r.Context())
	if caller.Mode == signin.ModeGuest {
		h.park(w, r, caller, answer)
		return
	}
	result, err := h.logins.Complete(r.Context(), caller.Access(), answer)
	if errors.Is(err, ErrUnknown) {
		h.limits.Allow(web.Callbacks, peer)
		h.fail(w, r, errAnswer, "", false)
		return
	}
	switch {
	case err == nil && result.Change != nil:
		h.showChange(w, r, result)
	case err == nil || errors.Is(err, ErrFinished) && result.Outcome != "":
		if !result.Outcome.Open() {
			if back := h.takeReturn(w, r, result.Correlator); back != "" {
				h.sendBack(w, r, back, result.Correlator)
				return
			}
		}
		h.show(w, r, h.outcome(result, err != nil))
	default:
		h.fail(w, r, err, result.RequestID, result.Outcome.Open())
	}
}

// park hands the browser on to the service, which knows whose it is.
func (h *Handler) park(w http.ResponseWriter, r *http.Request, caller signin.Principal, answer Callback) {
	redirect, err := h.logins.Park(r.Context(), caller, answer)
	if err != nil {
		if errors.Is(err, ErrUnknown) {
			h.limits.Allow(web.Callbacks, h.peer(r))
			err = errAnswer
		}
		h.fail(w, r, err, "", false)
		return
	}
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", redirect)
	w.WriteHeader(http.StatusSeeOther)
}

// parseCallback reads an authorization response; false when it is none. error_description and error_uri are dropped
// unread: they are anybody's text.
func parseCallback(digest, rawQuery string) (Callback, bool) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil || digest == "" || len(digest) > maxDigest || strings.Trim(digest, "0123456789abcdef") != "" {
		return Callback{}, false
	}
	state, ok1 := single(query, "state")
	code, ok2 := single(query, "code")
	iss, ok3 := single(query, "iss")
	problem, ok4 := single(query, "error")
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return Callback{}, false
	case state == "" || len(state) > maxState || len(code) > maxCode || len(iss) > maxIss:
		return Callback{}, false
	case (code == "") == (problem == ""):
		return Callback{}, false
	}
	return Callback{
		Digest: digest, State: auth.NewSecret(state), Code: auth.NewSecret(code),
		Iss: iss, IssPresent: query.Has("iss"), Error: knownError(problem),
	}, true
}

// knownError maps a provider's error to the codes of RFC 6749 section 4.1.2.1 and OpenID Connect Core section 3.1.2.6.
func knownError(code string) string {
	known := []string{
		"", "invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope",
		"server_error", "temporarily_unavailable", "invalid_target", "interaction_required", "login_required",
		"account_selection_required", "consent_required",
	}
	if slices.Contains(known, code) {
		return code
	}
	return "other"
}
