package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tarry/session"
)

const eventColumns = `seq, id, kind, parents, body`

func scanEvent(scan func(...any) error) (*session.Record, error) {
	var r session.Record
	var id, parents, body string
	if err := scan(&r.Seq, &id, &r.Kind, &parents, &body); err != nil {
		return nil, err
	}
	r.Body = []byte(body)
	if err := decode(body, &r.Event); err != nil {
		return nil, err
	}
	return &r, decode(parents, &r.Parents)
}

// Events implements [session.Log].
func (s *Store) Events(ctx context.Context, row session.Session, ids []string) ([]*session.Record, error) {
	return s.read(ctx).events(row.WorkflowID, ids)
}

func (c *conn) events(workflowID string, ids []string) ([]*session.Record, error) {
	if ids == nil {
		return collect(c, `SELECT `+eventColumns+` FROM events WHERE workflow_id = ? ORDER BY seq`, []any{workflowID}, scanEvent)
	}
	var out []*session.Record
	for chunk := range slices.Chunk(ids, 500) { // below every database's limit of parameters
		args := []any{workflowID}
		for _, id := range chunk {
			args = append(args, id)
		}
		marks := strings.TrimSuffix(strings.Repeat("?,", len(chunk)), ",")
		found, err := collect(c, `SELECT `+eventColumns+` FROM events WHERE workflow_id = ? AND id IN (`+marks+`) ORDER BY seq`, args, scanEvent)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// Append implements [session.Log].
func (s *Store) Append(ctx context.Context, a session.Append) (out []*session.Record, err error) {
	err = s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byOwner, a.Owner.App, a.Owner.User, a.Session)
		if err != nil {
			return err
		}
		out, err = c.appendAt(row, at, a)
		if err == nil && at.repeated {
			out[len(out)-1].Repeated = true
		}
		return err
	})
	return out, err
}

// append adds to a session whose stand is not known.
func (c *conn) append(row session.Session, a session.Append) error {
	_, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
	if err != nil {
		return err
	}
	_, err = c.appendAt(row, at, a)
	return err
}

// appendAt is the one place where events enter the log, moving the session's tips and everything that hangs on an event.
func (c *conn) appendAt(row session.Session, at *stand, a session.Append) ([]*session.Record, error) {
	if err := c.enter(at, a.Run); err != nil {
		return nil, err
	}
	if at.replaced && len(a.Events) > 0 && a.Events[0].Kind != session.KindUser {
		if _, err := c.revive(at, a.Events[0].InvocationID); err != nil {
			return nil, err
		}
	}
	out := make([]*session.Record, 0, len(a.Events))
	for _, e := range a.Events {
		r, fresh, err := c.insertEvent(row, e)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		if !fresh && (e.Kind == session.KindModel || e.Kind == session.KindAgent) {
			// Another attempt has answered, perhaps otherwise: what hangs on this one's answer must not hang on that one's.
			at.repeated = true
			return out, c.save(at, "")
		}
		if !fresh {
			continue
		}
		if err := c.goesOn(at, e); err != nil {
			return nil, err
		}
		if at.current {
			if err := c.moveTips(at, a.Run, r); err != nil {
				return nil, err
			}
		}
		if err := c.applyScoped(row.Owner, r.Actions.StateDelta); err != nil {
			return nil, err
		}
	}
	for _, call := range a.Calls {
		if err := c.insertCall(row, call); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.Answers)) {
		if err := c.answer(row, id, a.Answers[id]); err != nil {
			return nil, err
		}
	}
	if err := c.acted(a.Acted); err != nil {
		return nil, err
	}
	if err := c.whole(a.Whole); err != nil {
		return nil, err
	}
	if !at.current {
		return out, nil
	}
	return out, c.save(at, a.Status)
}

// goesOn refuses the answer of a model to an invocation that has ended: its calls would never get a response.
func (c *conn) goesOn(at *stand, e session.NewEvent) error {
	if e.Kind != session.KindModel && e.Kind != session.KindAgent || e.InvocationID == at.goesOn {
		return nil
	}
	var ended int64
	err := c.get(`SELECT ended FROM invocations WHERE id = ?`, []any{e.InvocationID}, []any{&ended})
	if err != nil && !missing(err) {
		return err
	}
	if ended == 0 {
		return nil
	}
	if revived, err := c.revive(at, e.InvocationID); err != nil || !revived {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", session.ErrEnded, e.InvocationID)
	}
	return nil
}

// insertEvent stores e, or finds what is stored under its id.
func (c *conn) insertEvent(row session.Session, e session.NewEvent) (r *session.Record, fresh bool, err error) {
	if e.Timestamp == 0 {
		e.Timestamp = float64(c.now) / 1e6
	}
	body, err := encode(e.Event)
	if err != nil {
		return nil, false, err
	}
	if e.Parents == nil {
		e.Parents = []string{}
	}
	parents, err := encode(e.Parents)
	if err != nil {
		return nil, false, err
	}
	r = &session.Record{Parents: slices.Clone(e.Parents), Kind: e.Kind, Body: []byte(body)}
	if err := decode(body, &r.Event); err != nil { // what a repeat will read
		return nil, false, err
	}
	err = c.get(`INSERT INTO events (id, workflow_id, invocation, kind, author, parents, body, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING RETURNING seq`,
		[]any{e.ID, row.WorkflowID, e.InvocationID, string(e.Kind), e.Author, parents, body, c.now}, []any{&r.Seq})
	if missing(err) {
		r, err = c.repeated(row, e)
		return r, false, err
	}
	if err != nil {
		return nil, false, err
	}
	return r, true, nil
}

// repeated finds the event that has e's id already.
func (c *conn) repeated(row session.Session, e session.NewEvent) (*session.Record, error) {
	found, err := c.events(row.WorkflowID, []string{e.ID})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s is an event of another session", session.ErrConflict, e.ID)
	case found[0].Kind != e.Kind || found[0].Author != e.Author:
		return nil, fmt.Errorf("%w: %s is %s by %s, not %s by %s", session.ErrConflict, e.ID, found[0].Kind, found[0].Author, e.Kind, e.Author)
	}
	return found[0], nil
}
