package store

import (
	"slices"

	"tarry/auth"
	"tarry/session"
)

// revive opens an invocation again that had ended before the newest run began: a reset goes on with it. A run that ends an
// invocation began before, so that what is left of it revives nothing. Requests that the ending closed can be answered by
// nobody; whoever waits for one is told, and asks again.
func (c *conn) revive(at *stand, invocation string) (bool, error) {
	if !at.current || invocation == "" {
		return false, nil
	}
	n, err := c.exec(`UPDATE invocations SET status = 'running', ended = 0 WHERE id = ? AND workflow_id = ? AND ended > 0
		AND ended < (SELECT entered FROM runs WHERE workflow_id = ? AND run = ?)`, invocation, at.workflowID, at.workflowID, at.run)
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := c.exec(`UPDATE sessions SET closed = 0, status = 'running', invocation = ? WHERE workflow_id = ?`, invocation, at.workflowID); err != nil {
		return false, err
	}
	closed, err := c.requests(`workflow_id = ? AND invocation = ? AND status = ? ORDER BY seq`, at.workflowID, invocation, string(auth.StatusCancelled))
	if err != nil {
		return false, err
	}
	for _, r := range closed {
		if err := c.tell(r, r.Status); err != nil {
			return false, err
		}
	}
	return true, nil
}

// retake finds the message that a run which was reset takes once more: the first of those that were announced to it whose
// event is not in its view, and which so was taken by the run that it has replaced. Without heads nothing was said before,
// as far as the run knows; the message goes where it stood.
func (c *conn) retake(at *stand, heads, announced []string) (item *inboxItem, parents []string, err error) {
	if !at.current {
		return nil, nil, nil
	}
	taken, err := collect(c, `SELECT id, invocation, body, event FROM inbox WHERE workflow_id = ? AND event <> '' ORDER BY seq`, []any{at.workflowID}, scanInbox)
	if err != nil {
		return nil, nil, err
	}
	all, err := c.events(at.workflowID, nil)
	if err != nil {
		return nil, nil, err
	}
	byID := index(all)
	view, _ := session.Ancestors(byID, heads)
	seen := index(view)
	for _, m := range taken {
		event := byID[m.event]
		if !slices.Contains(announced, m.id) || event == nil || seen[m.event] != nil {
			continue
		}
		if heads == nil {
			heads = event.Parents
		}
		return &m, heads, nil
	}
	return nil, nil, nil
}

type inboxItem struct{ id, invocation, body, event string }

func scanInbox(scan func(...any) error) (i inboxItem, err error) {
	return i, scan(&i.id, &i.invocation, &i.body, &i.event)
}
