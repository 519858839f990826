package store

import (
	"context"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/notify"
	"tarry/session"
)

var _ oauth.Store = (*Store)(nil)

const isOpen = `status IN ('pending', 'exchanging')`

const requestColumns = `id, app, usr, session, workflow_id, invocation, agent, call, need, status, correlator, link, deadline, created, ended, reminders, reminded`

func scanRequest(scan func(...any) error) (auth.Request, error) {
	var r auth.Request
	var need string
	var deadline, created, ended, reminded int64
	err := scan(&r.ID, &r.Owner.App, &r.Owner.User, &r.Session, &r.WorkflowID, &r.Invocation, &r.Agent, &r.Call, &need, &r.Status, &r.Correlator, &r.Leader, &deadline, &created, &ended, &r.Reminders, &reminded)
	if err != nil {
		return r, err
	}
	r.Deadline, r.Created, r.Ended, r.Reminded = at(deadline), at(created), at(ended), at(reminded)
	return r, decode(need, &r.Need)
}

func (c *conn) requests(where string, args ...any) ([]auth.Request, error) {
	return collect(c, `SELECT `+requestColumns+` FROM requests WHERE `+where, args, scanRequest)
}

func (c *conn) request(id string) (auth.Request, error) {
	found, err := c.requests(`id = ?`, id)
	switch {
	case err != nil:
		return auth.Request{}, err
	case len(found) == 0:
		return auth.Request{}, oauth.ErrNotFound
	}
	return found[0], nil
}

// lockSlot makes Ask and Commit take turns: without it a grant that lands between "is there a token" and "there is an
// open request" would wake nobody.
func (c *conn) lockSlot(slot auth.Slot) error {
	body, err := encode(slot)
	if err != nil {
		return err
	}
	var now int64
	if err := c.get(`INSERT INTO slots (id, body, touched) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET touched = excluded.touched RETURNING `+c.d.clock,
		[]any{slot.ID(), body, c.now}, []any{&now}); err != nil {
		return err
	}
	c.passed(now)
	return nil
}

// locked reads a request under its slot's lock, under which every change of a request is made. Before the lock is there, the
// request may move to another slot.
func (c *conn) locked(id string) (auth.Request, error) {
	r, err := c.request(id)
	for err == nil {
		slot := r.Need.Slot
		if err := c.lockSlot(slot); err != nil {
			return r, err
		}
		if r, err = c.request(id); err == nil && r.Need.Slot == slot {
			break
		}
	}
	return r, err
}

// Ask opens a request: the row, the event that asks, and the mark on the call are one transaction under the slot's lock. a
// is the frame of the event, which is rendered inside, when the request's link is known; it must do nothing else. Ask asks nobody when the credential is there already, when the person has refused the same login in this invocation, or
// when an open request of the session covers the need, or
// when as many questions as may wait for one person in an app wait already. Whatever it finds, the call's mark is given back: nothing was
// executed, and a crash before the caller says so must not make the call's outcome unknown.
func (s *Store) Ask(ctx context.Context, a session.Append, r auth.Request, event func(auth.Request) (session.NewEvent, error)) (asked auth.Asked, err error) {
	err = s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byOwner, a.Owner.App, a.Owner.User, a.Session)
		if err != nil {
			return err
		}
		asked, err = c.ask(row, at, a, r, event)
		return err
	})
	return asked, err
}

func (c *conn) ask(row session.Session, at *stand, a session.Append, r auth.Request, event func(auth.Request) (session.NewEvent, error)) (auth.Asked, error) {
	if err := c.lockSlot(r.Need.Slot); err != nil {
		return auth.Asked{}, err
	}
	// An attempt that was retried may find that something else is missing by now, but it has one request and one event.
	earlier, err := c.requests(`id = ? AND workflow_id = ?`, r.ID, row.WorkflowID)
	if err != nil {
		return auth.Asked{}, err
	}
	if len(earlier) > 0 {
		return c.asked(row, a, r.Call, earlier[0])
	}
	slot := r.Need.Slot.ID()
	same, err := c.requests(`slot = ? AND workflow_id = ? ORDER BY seq`, slot, row.WorkflowID)
	if err != nil {
		return auth.Asked{}, err
	}
	find := func(match func(auth.Request) bool) (auth.Request, bool) {
		i := slices.IndexFunc(same, match)
		if i < 0 {
			return auth.Request{}, false
		}
		return same[i], true
	}
	if err := c.release(row, r.Call); err != nil {
		return auth.Asked{}, err
	}
	if granted, err := c.granted(slot, r.Need); err != nil || granted {
		return auth.Asked{Granted: granted}, err
	}
	same = slices.DeleteFunc(same, func(o auth.Request) bool { return o.Invocation != r.Invocation })
	if old, ok := find(func(o auth.Request) bool {
		return (o.Status == auth.StatusDenied || o.Status == auth.StatusExpired) && auth.Covers(r.Need.Scopes, o.Need.Own())
	}); ok {
		return auth.Asked{Request: old, Denied: true}, nil
	}
	if old, ok := find(func(o auth.Request) bool {
		return o.Status.Open() && auth.Covers(o.Need.Scopes, r.Need.Scopes) && o.Need.Refused >= r.Need.Refused && (o.Need.IDToken || !r.Need.IDToken)
	}); ok {
		switch stands, err := c.stands(at, old); {
		case err != nil:
			return auth.Asked{}, err
		case stands:
			return c.asked(row, a, r.Call, old)
		}
	}
	if often(r, same) {
		return auth.Asked{Often: true}, nil
	}
	if err := c.lead(&r); err != nil {
		return auth.Asked{}, err
	}
	if full, err := c.full(r); err != nil || full {
		return auth.Asked{Full: full}, err
	}
	e, err := event(r)
	if err != nil {
		return auth.Asked{}, err
	}
	asking := e.ID
	a.Events = []session.NewEvent{e}
	if asking == "" { // the event that it would come after says it all
		asking, a.Events = e.Parents[0], nil
	}
	return c.openRequest(row, a, r, slot, asking)
}

// often says that a toolset would ask once more than its run waits for answers, so that nobody would take the answer.
func often(r auth.Request, same []auth.Request) bool {
	n := 0
	for _, o := range same {
		if o.Status == auth.StatusGranted && o.Call == "" && o.Agent == r.Agent && o.Need.Toolset == r.Need.Toolset {
			n++
		}
	}
	return r.Call == "" && n >= auth.MaxAsked
}

// stands says whether the event of a request leads to where the session stands. One that a reset has left behind must get no
// answer: it would bring back what was said before it.
func (c *conn) stands(at *stand, r auth.Request) (bool, error) {
	var event string
	if err := c.get(`SELECT event FROM requests WHERE id = ?`, []any{r.ID}, []any{&event}); err != nil {
		return false, err
	}
	all, err := c.events(at.workflowID, nil)
	if err != nil {
		return false, err
	}
	view, _ := session.Ancestors(index(all), at.tips)
	return index(view)[event] != nil, nil
}

// granted says whether whoever asks would find a credential now. What they would not use, such as a token from the
// endpoint that a definition had before, must not count, or they would ask again for ever.
func (c *conn) granted(slot string, need auth.Need) (bool, error) {
	found, err := c.grants(`slot = ?`, slot)
	return err == nil && slices.ContainsFunc(found, func(g oauth.Grant) bool {
		return answers(g, need) && g.Version > need.Refused && auth.Covers(g.Scopes, need.Scopes) && (g.Expires.IsZero() || len(g.Refresh) > 0 || g.Left() > 0)
	}), err
}

// answers says whether a need could be met by a grant from where this one comes.
func answers(g oauth.Grant, need auth.Need) bool {
	return g.Slot == need.Slot && (!need.IDToken || len(g.IDToken) > 0) && (need.Provider.Discovered || g.Provider.TokenEndpoint == need.Provider.TokenEndpoint)
}

func (c *conn) openRequest(row session.Session, a session.Append, r auth.Request, slot, asking string) (auth.Asked, error) {
	need, err := encode(r.Need)
	if err != nil {
		return auth.Asked{}, err
	}
	r.Status, r.Created = auth.StatusPending, at(c.now)
	if err := c.append(row, a); err != nil {
		return auth.Asked{}, err
	}
	if _, err := c.exec(`INSERT INTO requests (id, app, usr, session, workflow_id, invocation, agent, call, slot, need, event, status, correlator, link, deadline, created, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
		r.ID, r.Owner.App, r.Owner.User, row.ID, row.WorkflowID, r.Invocation, r.Agent, r.Call, slot, need, asking, string(r.Status), r.Correlator, r.Leader, micros(r.Deadline), c.now); err != nil {
		return auth.Asked{}, err
	}
	if err := c.useCallback(r.Need); err != nil {
		return auth.Asked{}, err
	}
	if err := c.notify(r, notify.Asked); err != nil {
		return auth.Asked{}, err
	}
	if err := c.audit(r.Owner, row.ID, r.ID, auditAsked, r.Need.Toolset+"/"+r.Need.Tool); err != nil {
		return auth.Asked{}, err
	}
	return c.asked(row, a, r.Call, r)
}

// asked ties the call to the request, once, and is done with the request before it.
func (c *conn) asked(row session.Session, a session.Append, call string, r auth.Request) (auth.Asked, error) {
	out := auth.Asked{Request: r}
	if err := c.get(`SELECT event FROM requests WHERE id = ?`, []any{r.ID}, []any{&out.Event}); err != nil {
		return out, err
	}
	if _, err := c.exec(`UPDATE calls SET started = 0, asked = asked + CASE WHEN asking = ? THEN 0 ELSE 1 END, asking = ? WHERE id = ? AND workflow_id = ?`,
		out.Event, out.Event, call, row.WorkflowID); err != nil {
		return out, err
	}
	return out, c.acted(a.Acted)
}

// Request implements [oauth.Store].
func (s *Store) Request(ctx context.Context, id string, access auth.Access) (auth.Request, error) {
	r, err := s.read(ctx).request(id)
	if err == nil && !access(r.Owner) {
		return auth.Request{}, oauth.ErrNotFound
	}
	return r, err
}

// Requests implements [oauth.Store].
func (s *Store) Requests(ctx context.Context, owner agent.Owner, onlyOpen bool, limit int) ([]auth.Request, error) {
	where := `app = ? AND usr = ?`
	if onlyOpen {
		where += ` AND ` + isOpen
	}
	return s.read(ctx).requests(where+` ORDER BY seq DESC LIMIT ?`, owner.App, owner.User, limit)
}

// CloseRequest ends a request at its deadline. It may find that the login came first: the status that it returns is the
// row's.
func (s *Store) CloseRequest(ctx context.Context, row session.Session, id string) (status auth.Status, err error) {
	err = s.tx(ctx, func(c *conn) error {
		r, err := c.locked(id)
		if err != nil {
			return err
		}
		if r.WorkflowID != row.WorkflowID {
			return oauth.ErrNotFound
		}
		status = r.Status
		if status != auth.StatusPending { // exchanging too: the code is on its way, the exchange ends in seconds
			return nil
		}
		status = auth.StatusExpired
		return c.end(r, status, "deadline")
	})
	return status, err
}

// WithdrawRequest cancels the request of a call that was cancelled, unless another open call waits for it; closed says that
// it is cancelled now. A repeat finds what the first one did.
func (s *Store) WithdrawRequest(ctx context.Context, row session.Session, id string) (closed bool, err error) {
	err = s.tx(ctx, func(c *conn) error {
		closed = false
		if _, _, err := c.lockedStand(byWorkflow, row.WorkflowID); err != nil {
			return err
		}
		r, err := c.locked(id)
		if err != nil {
			return err
		}
		if r.WorkflowID != row.WorkflowID {
			return oauth.ErrNotFound
		}
		var others int
		if err := c.get(`SELECT COUNT(*) FROM calls WHERE workflow_id = ? AND answer = '' AND asking = (SELECT event FROM requests WHERE id = ?)`,
			[]any{row.WorkflowID, id}, []any{&others}); err != nil || others > 0 && r.Need.Login() { // only a login is one for several calls
			return err
		}
		if closed = r.Status == auth.StatusCancelled; r.Status.Open() {
			closed = true
			if err := c.end(r, auth.StatusCancelled, "call cancelled"); err != nil {
				return err
			}
		}
		return c.acted(id)
	})
	return closed, err
}

// end closes an open request; the caller has checked under the slot's lock that it is open, and tells the run if it must.
func (c *conn) end(r auth.Request, status auth.Status, detail string) error {
	if _, err := c.exec(`UPDATE requests SET status = ?, ended = ? WHERE id = ? AND `+isOpen, string(status), c.now, r.ID); err != nil {
		return err
	}
	if status == auth.StatusCancelled || status == auth.StatusExpired {
		if err := c.inherit(r); err != nil {
			return err
		}
	}
	if err := c.unwarn(r); err != nil {
		return err
	}
	if err := c.notify(r, string(status)); err != nil {
		return err
	}
	if err := c.spendFlows(r); err != nil {
		return err
	}
	return c.audit(r.Owner, r.Session, r.ID, string(status), detail)
}

// tell writes the message that wakes the run.
func (c *conn) tell(r auth.Request, status auth.Status) error {
	outcome := string(status)
	if status == auth.StatusGranted && (r.Need.Type == auth.TypeQuestion || r.Need.Type == auth.TypeResult) {
		outcome = outcomeAnswered
	}
	return c.send(r.WorkflowID, signalResolved, r.ID, map[string]string{"request": r.ID, "outcome": outcome})
}

// outcomeAnswered is wire's; store does not import wire.
const outcomeAnswered = "answered"

// cancelRequests ends what an invocation, or with an empty one the whole session, still asks for, and the messages that
// nobody will act on.
func (c *conn) cancelRequests(workflowID, invocation, why string) error {
	where, args := `workflow_id = ?`, []any{workflowID}
	if invocation != "" {
		where, args = where+` AND invocation = ?`, append(args, invocation)
	}
	all, err := c.requests(where+` ORDER BY seq`, args...)
	if err != nil {
		return err
	}
	// Slots are locked in one order, which is not that of the database's collation.
	slices.SortStableFunc(all, func(a, b auth.Request) int { return strings.Compare(a.Need.Slot.ID(), b.Need.Slot.ID()) })
	for _, r := range all {
		if r.Status.Open() {
			if r, err = c.locked(r.ID); err != nil {
				return err
			}
		}
		if r.Status.Open() {
			if err := c.end(r, auth.StatusCancelled, why); err != nil {
				return err
			}
		}
		if err := c.acted(r.ID); err != nil {
			return err
		}
	}
	return nil
}
