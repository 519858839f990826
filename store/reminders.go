package store

import (
	"context"

	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/notify"
	"tarry/session"
)

// Remind writes down that a person is reminded of a request: the counter, a row of the audit table, and an event, for clients
// that follow the session, which event makes of the request as it is then. Its parent is the event that asks. Nothing happens
// for a request that nobody is asked any more, nor for a run that another has replaced, and a repeat with the same event id
// does nothing more. Of a, only who appends is used.
func (s *Store) Remind(ctx context.Context, a session.Append, id string, event func(auth.Request) session.NewEvent) error {
	return s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byOwner, a.Owner.App, a.Owner.User, a.Session)
		if err != nil {
			return err
		}
		if err := c.enter(at, a.Run); err != nil || !at.current {
			return err
		}
		r, err := c.locked(id)
		if err != nil {
			return err
		}
		if r.WorkflowID != row.WorkflowID {
			return oauth.ErrNotFound
		}
		if r.Status != auth.StatusPending { // exchanging too: the person is there
			return nil
		}
		return c.remind(row, r, event)
	})
}

func (c *conn) remind(row session.Session, r auth.Request, event func(auth.Request) session.NewEvent) error {
	r.Reminders, r.Reminded = r.Reminders+1, at(c.now)
	e := event(r)
	var asking string
	if err := c.get(`SELECT event FROM requests WHERE id = ?`, []any{r.ID}, []any{&asking}); err != nil {
		return err
	}
	e.Kind, e.Parents = session.KindReminder, []string{asking}
	_, fresh, err := c.insertEvent(row, e)
	if err != nil || !fresh {
		return err
	}
	if _, err := c.exec(`UPDATE requests SET reminders = ?, reminded = ? WHERE id = ?`, r.Reminders, c.now, r.ID); err != nil {
		return err
	}
	if _, err := c.exec(`UPDATE sessions SET updated = ? WHERE workflow_id = ?`, c.now, row.WorkflowID); err != nil {
		return err
	}
	if err := c.notify(r, notify.Expiring); err != nil {
		return err
	}
	return c.audit(r.Owner, row.ID, r.ID, auditReminded, r.Need.Toolset+"/"+r.Need.Tool)
}

// withReminders adds the reminders of what a timeline asks. They are no part of what follows each other: nothing has one for a
// parent, so that no model sees it.
func withReminders(view, all []*session.Record) []*session.Record {
	var reminders bool
	for _, r := range all {
		reminders = reminders || r.Kind == session.KindReminder
	}
	if !reminders {
		return view
	}
	seen := index(view)
	out := make([]*session.Record, 0, len(all))
	for _, r := range all { // in the order of Seq, as view is
		if seen[r.ID] != nil || r.Kind == session.KindReminder && len(r.Parents) == 1 && seen[r.Parents[0]] != nil {
			out = append(out, r)
		}
	}
	return out
}
