package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"tarry/auth"
	"tarry/server/signin"
	"tarry/server/web"
)

// Audit reads the audit log.
type Audit interface {
	// Audit returns rows that q selects and access allows, oldest first; at most limit are looked at. [auth.ErrCursor] when
	// q.After is not a cursor.
	Audit(ctx context.Context, q auth.AuditQuery, access auth.Access, limit int) (auth.AuditPage, error)
}

// Entry is one row of the audit log.
type Entry struct {
	At      time.Time `json:"at"`
	App     string    `json:"app"`
	User    string    `json:"user"`
	Session string    `json:"session,omitempty"`
	Request string    `json:"request,omitempty"`
	Action  string    `json:"action"`
	Detail  string    `json:"detail,omitempty"`
	// Actor is who did it, where somebody did: the subject of the person or service that was signed in.
	Actor string `json:"actor,omitempty"`
}

// Log is a part of the audit log, oldest first.
type Log struct {
	Entries []Entry `json:"entries"`
	// Next is what after is set to for the entries that follow, also for those that come later.
	Next string `json:"next"`
	// More says that there may be more already, also when Entries is empty.
	More bool `json:"more"`
}

func (h *Handler) audit(r *http.Request) (any, error) {
	query := r.URL.Query()
	caller := signin.FromContext(r.Context())
	user, err := mayRead(caller, query.Get("app"), query.Get("user"))
	if err != nil {
		return nil, err
	}
	since, err := moment(query, "since")
	if err != nil {
		return nil, err
	}
	until, err := moment(query, "until")
	if err != nil {
		return nil, err
	}
	most, err := web.Limit(query, defaultEntries)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	page, err := h.Log.Audit(r.Context(), auth.AuditQuery{
		App: query.Get("app"), User: user, Action: query.Get("action"), Since: since, Until: until, After: query.Get("after"),
	}, caller.Access(), most)
	switch {
	case errors.Is(err, auth.ErrCursor):
		return nil, web.Refusal(http.StatusBadRequest, "after is not a cursor: take the next of an earlier answer")
	case err != nil:
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	out := Log{Entries: make([]Entry, 0, len(page.Rows)), Next: page.Next, More: page.More}
	for _, row := range page.Rows {
		out.Entries = append(out.Entries, Entry{
			At: row.At, App: row.Owner.App, User: row.Owner.User, Session: row.Session, Request: row.Request, Action: row.Action,
			Detail: row.Detail, Actor: row.Actor,
		})
	}
	return out, nil
}

// mayRead wants a right to all that a query selects, not only to what it finds: how many rows of others there are is nobody
// else's business. Where no app or user is named, that is a right to one that nobody has heard of. It returns the user, empty
// for all.
func mayRead(caller signin.Principal, app, user string) (string, error) {
	if app == "" {
		app = uuid.NewString()
	}
	if user == "" {
		if _, err := caller.Owner(app, uuid.NewString()); err != nil {
			return "", web.Refusal(http.StatusForbidden, "the caller may not see what everybody's is: name a user, and an app, that the caller may act for")
		}
		return "", nil
	}
	owner, err := caller.Owner(app, user)
	if err != nil {
		return "", web.Refusal(http.StatusForbidden, "the caller may not see what this user's is: name a user, and an app, that the caller may act for")
	}
	return owner.User, nil
}

func moment(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, web.Refusal(http.StatusBadRequest, "%s is not a time such as 2026-03-01T12:00:00Z", name)
	}
	return t, nil
}
