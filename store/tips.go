package store

import (
	"context"
	"slices"

	"tarry/agent"
	"tarry/session"
)

func (c *conn) tips(workflowID string) ([]string, error) {
	tips, _, err := c.tipsAndRun(workflowID)
	return tips, err
}

func (c *conn) tipsAndRun(workflowID string) (tips []string, run string, err error) {
	var body string
	if err := c.get(`SELECT tips, tips_run FROM sessions WHERE workflow_id = ?`, []any{workflowID}, []any{&body, &run}); err != nil {
		return nil, "", err
	}
	return tips, run, decode(body, &tips)
}

// moveTips puts r in the place of its parents.
func (c *conn) moveTips(workflowID, run string, r *session.Record) error {
	tips, before, err := c.tipsAndRun(workflowID)
	if err != nil {
		return err
	}
	left := func(id string) bool { return !slices.Contains(r.Parents, id) }
	if before != run && slices.ContainsFunc(tips, left) {
		if tips, err = c.restart(workflowID, r.Parents); err != nil {
			return err
		}
	}
	body, err := encode(append(slices.DeleteFunc(tips, func(id string) bool { return !left(id) }), r.ID))
	if err != nil {
		return err
	}
	_, err = c.exec(`UPDATE sessions SET tips = ?, tips_run = ?, updated = ? WHERE workflow_id = ?`, body, run, c.now, workflowID)
	return err
}

// restart returns where a run stands that was reset and now appends to parents: what the replaced run said after that
// point is no part of the session any more, or the next invocation would see both. Answers of calls in the view stay,
// since a call that was answered does not run again.
func (c *conn) restart(workflowID string, parents []string) ([]string, error) {
	all, err := c.events(workflowID, nil)
	if err != nil {
		return nil, err
	}
	view, _ := session.Ancestors(index(all), parents)
	seen := index(view)
	type answered struct{ event, answer string }
	calls, err := collect(c, `SELECT event, answer FROM calls WHERE workflow_id = ? AND answer <> '' ORDER BY seq`, []any{workflowID},
		func(scan func(...any) error) (a answered, err error) {
			return a, scan(&a.event, &a.answer)
		})
	if err != nil {
		return nil, err
	}
	tips := slices.Clone(parents)
	for _, call := range calls {
		if seen[call.event] != nil && seen[call.answer] == nil {
			tips = append(tips, call.answer)
		}
	}
	return tips, nil
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
	tips, err := c.tips(row.WorkflowID)
	if err != nil {
		return nil, err
	}
	all, err := c.events(row.WorkflowID, nil)
	if err != nil {
		return nil, err
	}
	view, _ := session.Ancestors(index(all), tips)
	return slices.DeleteFunc(view, func(r *session.Record) bool { return r.Seq <= after }), nil
}
