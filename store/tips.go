package store

import (
	"context"
	"slices"

	"tarry/agent"
	"tarry/session"
)

func (c *conn) tips(workflowID string) (tips []string, err error) {
	var body string
	if err := c.get(`SELECT tips FROM sessions WHERE workflow_id = ?`, []any{workflowID}, []any{&body}); err != nil {
		return nil, err
	}
	return tips, decode(body, &tips)
}

// moveTips puts r in the place of its parents. What has moved is stored by save.
func (c *conn) moveTips(at *stand, run string, r *session.Record) error {
	left := func(id string) bool { return !slices.Contains(r.Parents, id) }
	if at.tipsRun != run && slices.ContainsFunc(at.tips, left) {
		var err error
		if at.tips, err = c.restart(at, r.Parents); err != nil {
			return err
		}
	}
	at.tips = append(slices.DeleteFunc(at.tips, func(id string) bool { return !left(id) }), r.ID)
	at.tipsRun, at.moved = run, true
	return nil
}

// restart returns where a run stands that was reset and now appends to parents: what the replaced run said after that
// point is no part of the session any more, or the next invocation would see both. Answers of calls in the view stay,
// since a call that was answered does not run again, and what clients wrote to the state, which no run has said.
func (c *conn) restart(at *stand, parents []string) ([]string, error) {
	seen, err := c.seen(at.workflowID, parents)
	if err != nil {
		return nil, err
	}
	type answered struct{ event, answer string }
	calls, err := collect(c, `SELECT event, answer FROM calls WHERE workflow_id = ? AND answer <> '' ORDER BY seq`, []any{at.workflowID},
		func(scan func(...any) error) (a answered, err error) {
			return a, scan(&a.event, &a.answer)
		})
	if err != nil {
		return nil, err
	}
	tips := slices.Clone(parents)
	if at.patch != "" && seen[at.patch] == nil {
		tips = append(tips, at.patch)
	}
	for _, call := range calls {
		if seen[call.event] != nil && seen[call.answer] == nil {
			tips = append(tips, call.answer)
		}
	}
	return tips, nil
}

// seen is the view of heads, by id.
func (c *conn) seen(workflowID string, heads []string) (map[string]*session.Record, error) {
	all, err := c.events(workflowID, nil)
	if err != nil {
		return nil, err
	}
	view, _ := session.Ancestors(index(all), heads)
	return index(view), nil
}

func index(records []*session.Record) map[string]*session.Record {
	out := make(map[string]*session.Record, len(records))
	for _, r := range records {
		out[r.ID] = r
	}
	return out
}

// Timeline implements [session.Log].
func (s *Store) Timeline(ctx context.Context, owner agent.Owner, id string, after int64) ([]*session.Record, error) {
	c := s.read(ctx)
	row, err := c.session(owner, id)
	if err != nil {
		return nil, err
	}
	all, err := c.events(row.WorkflowID, nil)
	if err != nil {
		return nil, err
	}
	view, err := c.timeline(row.WorkflowID, all)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(view, func(r *session.Record) bool { return r.Seq <= after }), nil
}

// timeline picks those that lead to where the session stands.
func (c *conn) timeline(workflowID string, all []*session.Record) ([]*session.Record, error) {
	tips, err := c.tips(workflowID)
	if err != nil {
		return nil, err
	}
	view, _ := session.Ancestors(index(all), tips)
	return withReminders(view, all), nil
}

// Reread implements [session.Log]: it reads what an event is and follows, and what it says only where that is not known.
func (s *Store) Reread(ctx context.Context, owner agent.Owner, id string, known map[string]*session.Record) ([]*session.Record, error) {
	if len(known) == 0 {
		return s.Timeline(ctx, owner, id, 0)
	}
	c := s.read(ctx)
	row, err := c.oneStanding(byOwner, owner.App, owner.User, id)
	if err != nil {
		return nil, err
	}
	all, err := collect(c, `SELECT seq, id, kind, parents FROM events WHERE workflow_id = ? ORDER BY seq`, []any{row.WorkflowID}, scanHead)
	if err != nil {
		return nil, err
	}
	view, err := c.timeline(row.WorkflowID, all)
	if err != nil {
		return nil, err
	}
	missing := []string{}
	for _, r := range view {
		if known[r.ID] == nil {
			missing = append(missing, r.ID)
		}
	}
	fresh, err := c.events(row.WorkflowID, missing)
	if err != nil {
		return nil, err
	}
	read := index(fresh)
	for i, r := range view {
		if view[i] = known[r.ID]; view[i] == nil {
			view[i] = read[r.ID]
		}
	}
	return slices.DeleteFunc(view, func(r *session.Record) bool { return r == nil }), nil // the session was deleted meanwhile
}

func scanHead(scan func(...any) error) (*session.Record, error) {
	var r session.Record
	var parents string
	if err := scan(&r.Seq, &r.ID, &r.Kind, &parents); err != nil {
		return nil, err
	}
	return &r, decode(parents, &r.Parents)
}
