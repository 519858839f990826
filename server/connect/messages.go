package connect

import (
	"errors"
	"net/http"

	"tarry/auth"
)

// message is a page that says one thing.
type message struct {
	status int
	title  string
	lines  []string
	// again offers the request's link, under this text.
	again string
	// alert is for what went wrong; the rest is status.
	alert bool
}

type refused struct {
	err error
	message
}

const closeWindow = "You can close this window."

// refusals is the one table from error to page. The texts are fixed: what the provider said is not shown.
func refusals() []refused {
	return []refused{
		{ErrUnknown, message{http.StatusNotFound, "Link not found", []string{"There is no request behind this link, or it is not yours."}, "", true}},
		{errAnswer, message{http.StatusBadRequest, "Login not recognised", []string{"This answer belongs to no login that was begun here. Nothing was changed.", "Open the link that you were sent again."}, "", true}},
		{errForm, message{http.StatusForbidden, "Page out of date", []string{"This page is too old, or it was opened in another browser. Nothing was begun.", "Open the link that you were sent again, and allow cookies for this site."}, "", true}},
		{ErrWrongBrowser, message{http.StatusForbidden, "Begun in another browser", []string{"This login was begun in another browser, so it cannot be finished here. Nothing was changed.", "Finish it where you began, or open the link that you were sent here."}, "", true}},
		{ErrWrongUser, message{http.StatusForbidden, "Not your request", []string{"This login was asked of somebody else. Nothing was changed."}, "", true}},
		{ErrExpired, message{http.StatusGone, "Login expired", []string{"The time for this login is over."}, "Try again", true}},
		{ErrCancelled, message{http.StatusGone, "Request cancelled", []string{"Nobody waits for this login any more.", closeWindow}, "", false}},
		{ErrFinished, message{http.StatusGone, "Already answered", []string{"This login was answered before.", closeWindow}, "", false}},
		{ErrTooMany, message{http.StatusTooManyRequests, "Too many attempts", []string{"Too many logins were begun. Wait a few minutes before you try again."}, "Try again", true}},
		{ErrProvider, message{http.StatusBadGateway, "The provider refused", []string{"The provider did not complete the login. You are not connected yet."}, "Try again", true}},
		{ErrMisconfigured, message{http.StatusInternalServerError, "Set-up problem", []string{"This login cannot work before an operator changes the set-up."}, "", true}},
		{ErrTryAgain, message{http.StatusInternalServerError, "Try again", []string{"Something went wrong here. You are not connected yet."}, "Try again", true}},
	}
}

// refusal is the page for err. The link appears when the request is named and open.
func (h *Handler) refusal(err error, requestID string, open bool) view {
	m := message{http.StatusInternalServerError, "Something went wrong", []string{"The server could not do this. You are not connected yet."}, "Try again", true}
	for _, row := range refusals() {
		if errors.Is(err, row.err) {
			m = row.message
			break
		}
	}
	var told *MisconfiguredError
	if errors.As(err, &told) && told.Text != "" {
		m.lines = append(m.lines, told.Text)
	}
	if !open {
		requestID = ""
	}
	return h.say(m, requestID)
}

// outcome is the page for a request's status. before says that it was answered earlier.
func (h *Handler) outcome(r Result, before bool) view {
	who := r.App
	if who == "" {
		who = "The agent"
	}
	m := message{status: http.StatusOK}
	switch {
	case r.Confirmation && !r.Outcome.Open() && before && r.Outcome != auth.StatusExpired && r.Outcome != auth.StatusCancelled:
		m.title, m.lines = "Already answered", []string{"This call was " + word(r.Outcome) + " before. Nothing was changed.", closeWindow}
	case r.Confirmation && r.Outcome == auth.StatusGranted:
		m.title, m.lines = "Approved", []string{who + " makes this one call and goes on by itself.", closeWindow}
	case r.Confirmation && r.Outcome == auth.StatusDenied:
		m.title, m.lines = "Rejected", []string{"The call is not made. " + who + " goes on without it.", closeWindow}
	case r.Confirmation && r.Outcome == auth.StatusExpired:
		m.status, m.title, m.lines = http.StatusGone, "Request expired", []string{"The time for this approval is over, and the call was not made.", closeWindow}
	case r.Confirmation && r.Outcome == auth.StatusCancelled:
		m.status, m.title, m.lines = http.StatusGone, "Request cancelled", []string{"Nobody waits for this approval any more.", closeWindow}
	case r.Input && r.Outcome == auth.StatusGranted && before:
		m.title, m.lines = "Already answered", []string{"This was answered before.", closeWindow}
	case r.Input && r.Outcome == auth.StatusGranted:
		m.title, m.lines = "Thank you", []string{who + " goes on by itself.", closeWindow}
	case r.Input && r.Outcome == auth.StatusDenied:
		m.title, m.lines = "Declined", []string{who + " goes on without it.", closeWindow}
	case r.Key && r.Outcome == auth.StatusGranted && !before:
		m.title, m.lines = "Saved", []string{who + " can use it at " + r.ProviderHost + " and goes on by itself.", closeWindow}
	case r.Key && r.Outcome == auth.StatusDenied:
		m.title, m.lines = "Declined", []string{"Nothing was given. " + who + " goes on without it.", closeWindow}
	case r.Outcome == auth.StatusGranted && before:
		m.title, m.lines = "Already connected", []string{who + " has what it needs.", closeWindow}
	case r.Outcome == auth.StatusGranted && r.ProviderHost != "":
		m.title, m.lines = "Connected", []string{who + " is connected to " + r.ProviderHost + " and goes on by itself.", closeWindow}
	case r.Outcome == auth.StatusGranted:
		m.title, m.lines = "Connected", []string{who + " is connected and goes on by itself.", closeWindow}
	case r.Outcome == auth.StatusDenied && before:
		m.title, m.lines = "Already declined", []string{"This login was declined. " + who + " goes on without it.", closeWindow}
	case r.Outcome == auth.StatusDenied:
		m.title, m.lines = "Declined", []string{"You declined the login. " + who + " goes on without it.", closeWindow}
	case r.Outcome == auth.StatusExpired:
		m.status, m.title, m.lines = http.StatusGone, "Request expired", []string{"The time for this login is over. " + who + " went on without it.", closeWindow}
	case r.Outcome == auth.StatusCancelled:
		m.status, m.title, m.lines = http.StatusGone, "Request cancelled", []string{"Nobody waits for this login any more.", closeWindow}
	default:
		m.title, m.lines, m.again = "Login in progress", []string{"The login is being completed."}, "Look again"
	}
	return h.say(m, r.RequestID)
}

func word(s auth.Status) string {
	if s == auth.StatusGranted {
		return "approved"
	}
	return "rejected"
}
