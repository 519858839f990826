package connect

import (
	"errors"
	"net/http"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// Change is a login with another account than the one that is connected. Nothing is replaced before the person says so.
type Change struct {
	// Flow and Replaces come back in a [Choice].
	Flow     string
	Replaces string
	// From and To are the accounts' names, in the provider's words.
	From, To     string
	ProviderHost string
}

// Choice is what the person said to a [Change].
type Choice struct {
	Flow     string
	Replaces string
	// Replace is consent.
	Replace bool
	// Cookie is that of a [Callback].
	Cookie func(name string) auth.Secret
}

// showChange asks whether another account replaces the one before.
func (h *Handler) showChange(w http.ResponseWriter, r *http.Request, result Result) {
	h.show(w, r, view{
		status: http.StatusOK, file: "account.html", Frame: web.Frame{Title: "Another account"}, Action: AccountPath, Change: *result.Change,
		Page: Page{RequestID: result.RequestID, App: result.App},
		CSRF: h.csrf.Token(w, r, result.RequestID, signin.FromContext(r.Context()).Subject),
	})
}

// account takes what the person said to a change of the account.
func (h *Handler) account(w http.ResponseWriter, r *http.Request) {
	id, ok := h.form(w, r, maxForm)
	action, once := single(r.PostForm, "action")
	flow, onceFlow := single(r.PostForm, "flow")
	replaces, onceReplaces := single(r.PostForm, "replaces")
	if !ok || !once || !onceFlow || !onceReplaces || len(flow) > maxID || len(replaces) > maxID || action != "replace" && action != "keep" {
		h.fail(w, r, errForm, "", false)
		return
	}
	result, err := h.logins.Account(r.Context(), signin.FromContext(r.Context()).Access(), Choice{
		Flow: flow, Replaces: replaces, Replace: action == "replace",
		Cookie: func(name string) auth.Secret { return h.cookies.Value(r, name) },
	})
	switch {
	case err == nil && result.Change != nil: // the account before is another by now
		h.showChange(w, r, result)
	case err == nil && result.Outcome.Open() && action == "keep":
		h.show(w, r, h.say(message{
			status: http.StatusOK, title: "Nothing was replaced", again: "Log in again",
			lines: []string{"The account that was connected before stays, and the other one was not kept.", "The agent still waits for a login."},
		}, result.RequestID))
	case err == nil || errors.Is(err, ErrFinished) && result.Outcome != "":
		if back := h.takeReturn(w, r, result.Correlator); back != "" && !result.Outcome.Open() {
			h.sendBack(w, r, back, result.Correlator)
			return
		}
		h.show(w, r, h.outcome(result, err != nil))
	default:
		h.fail(w, r, err, result.RequestID, result.Outcome.Open() && id == result.RequestID)
	}
}
