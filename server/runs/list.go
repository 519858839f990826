package runs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tarry/auth"
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

func kindOf(r auth.Request) string {
	if !r.Need.Login() {
		return r.Need.Type
	}
	if r.Need.Typed != nil {
		return "key"
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

// list answers the runs of a user that go on or wait, with all=true every session, newest first.
func (h *Handler) list(r *http.Request) (any, error) {
	owners, err := h.owners(r)
	if err != nil {
		return nil, err
	}
	most, err := limit(r)
	if err != nil {
		return nil, err
	}
	out := []Run{}
	for _, owner := range owners {
		fetch := most
		if !truth(r, "all") {
			fetch = mostLimit // those that have ended are left out below
		}
		rows, err := h.Log.Sessions(r.Context(), owner, fetch)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		open, err := h.Requests.Requests(r.Context(), owner, true, mostLimit)
		if err != nil {
			return nil, fmt.Errorf("list requests: %w", err)
		}
		for _, row := range rows {
			if truth(r, "all") || active(row) {
				out = append(out, h.runOf(row, open))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int { return b.Created.Compare(a.Created) })
	return map[string]any{"runs": out[:min(most, len(out))]}, nil
}

func active(row session.Session) bool {
	return !row.Closed && (row.Status == string(wire.StateRunning) || strings.HasPrefix(row.Status, "waiting_"))
}

// logins answers the login requests of a user that are open, with all=true every one, newest first.
func (h *Handler) logins(r *http.Request) (any, error) {
	owners, err := h.owners(r)
	if err != nil {
		return nil, err
	}
	most, err := limit(r)
	if err != nil {
		return nil, err
	}
	out := []Login{}
	for _, owner := range owners {
		requests, err := h.Requests.Requests(r.Context(), owner, !truth(r, "all"), most)
		if err != nil {
			return nil, fmt.Errorf("list requests: %w", err)
		}
		for _, q := range requests {
			out = append(out, Login{
				Kind:    kindOf(q),
				Request: q.ID, Status: q.Status, Link: q.Link(h.PublicURL), App: q.Owner.App, User: q.Owner.User, Session: q.Session, Agent: q.Agent,
				Tool: q.Need.Tool, Toolset: q.Need.Toolset, Provider: provider(q), Server: q.Need.Server,
				Scopes: list(q.Need.Scopes), Created: q.Created, Deadline: q.Deadline, Ended: q.Ended,
				Reminders: q.Reminders, LastReminded: q.Reminded,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Login) int { return b.Created.Compare(a.Created) })
	return map[string]any{"logins": out[:min(most, len(out))]}, nil
}

// openRequests are those of one session.
func (h *Handler) openRequests(ctx context.Context, row session.Session) ([]auth.Request, error) {
	open, err := h.Requests.Requests(ctx, row.Owner, true, mostLimit)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return open, nil
}
