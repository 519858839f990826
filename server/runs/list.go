package runs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tarry/auth"
	"tarry/server/web"
	"tarry/session"
	"tarry/wire"
)

// stateNew is shown for a session without a message.
const stateNew = "new"

func (h *Handler) runOf(row session.Session, open []auth.Request) Run {
	out := Run{
		App: row.Owner.App, User: row.Owner.User, Session: row.ID, State: row.Status, Mode: row.Mode, Invocation: row.Invocation,
		WaitingFor: []Waiting{}, Created: row.Created, Updated: row.Updated,
	}
	for _, q := range open {
		if q.WorkflowID == row.WorkflowID && q.Status.Open() {
			out.WaitingFor = append(out.WaitingFor, Waiting{
				Kind: kindOf(q), Request: q.ID, Link: q.Link(h.PublicURL), Provider: provider(q), Tool: q.Need.Tool, Toolset: q.Need.Toolset,
				Agent: q.Agent, Call: q.Call, Scopes: list(q.Need.Scopes), Since: q.Created, Deadline: q.Deadline,
				Reminders: q.Reminders, LastReminded: q.Reminded,
			})
		}
	}
	switch {
	case row.Status == "":
		out.State = stateNew
	case strings.HasPrefix(row.Status, "waiting_") && len(out.WaitingFor) == 0:
		out.State = string(wire.StateRunning) // the login is there, and the run has not written down yet that it goes on
	}
	return out
}

// kindKey is the kind of a request for a credential that a person types.
const kindKey = "key"

func kindOf(r auth.Request) string {
	if !r.Need.Login() {
		return r.Need.Type
	}
	if r.Need.Typed != nil {
		return kindKey
	}
	return "login"
}

// provider is whom the person deals with: the issuer, or the server that wants input or has the tool.
func provider(r auth.Request) string {
	if r.Need.Login() {
		return r.Need.Provider.Issuer
	}
	u, err := url.Parse(r.Need.Server)
	if err != nil || u.Host == "" {
		return r.Need.Toolset
	}
	return u.Scheme + "://" + u.Host
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// list answers a page of the runs of a user that go on or wait, with all=true of every session, newest first.
func (h *Handler) list(r *http.Request) (any, error) {
	user, apps, q, err := h.page(r)
	if err != nil {
		return nil, err
	}
	rows, next, err := h.Lists.SessionPage(r.Context(), user, apps, q)
	if err != nil {
		return nil, notCursor(err)
	}
	open, err := h.openRequests(r.Context(), rows...)
	if err != nil {
		return nil, err
	}
	out := struct {
		Runs []Run `json:"runs"`
		// Next is what after is set to for the next page; empty on the last one.
		Next string `json:"next,omitempty"`
	}{[]Run{}, next}
	for _, row := range rows {
		out.Runs = append(out.Runs, h.runOf(row, open))
	}
	return out, nil
}

// logins answers a page of the login requests of a user that are open, with all=true of every one, newest first.
func (h *Handler) logins(r *http.Request) (any, error) {
	user, apps, query, err := h.page(r)
	if err != nil {
		return nil, err
	}
	requests, next, err := h.Lists.RequestPage(r.Context(), user, apps, query)
	if err != nil {
		return nil, notCursor(err)
	}
	out := struct {
		Logins []Login `json:"logins"`
		Next   string  `json:"next,omitempty"`
	}{[]Login{}, next}
	for _, q := range requests {
		out.Logins = append(out.Logins, Login{
			Kind:    kindOf(q),
			Request: q.ID, Status: q.Status, Link: q.Link(h.PublicURL), App: q.Owner.App, User: q.Owner.User, Session: q.Session, Agent: q.Agent,
			Tool: q.Need.Tool, Toolset: q.Need.Toolset, Provider: provider(q), Server: q.Need.Server,
			Scopes: list(q.Need.Scopes), Created: q.Created, Deadline: q.Deadline, Ended: q.Ended,
			Reminders: q.Reminders, LastReminded: q.Reminded,
		})
	}
	return out, nil
}

// page reads what a listing is about.
func (h *Handler) page(r *http.Request) (user string, apps []string, q auth.PageQuery, err error) {
	owners, err := h.owners(r)
	if err != nil {
		return "", nil, q, err
	}
	for _, o := range owners { // of one user
		user, apps = o.User, append(apps, o.App)
	}
	most, err := web.Limit(r.URL.Query(), defaultLimit)
	return user, apps, auth.PageQuery{After: r.URL.Query().Get("after"), Open: !web.Truth(r, "all"), Limit: most}, err //nolint:wrapcheck // a RequestError is what the caller gets
}

func notCursor(err error) error {
	if errors.Is(err, auth.ErrCursor) {
		return web.Refusal(http.StatusBadRequest, "after is not a cursor: take the next of an earlier answer")
	}
	return fmt.Errorf("list: %w", err)
}

// openRequests are those of sessions.
func (h *Handler) openRequests(ctx context.Context, rows ...session.Session) ([]auth.Request, error) {
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.WorkflowID)
	}
	open, err := h.Lists.OpenRequests(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return open, nil
}
