package store

import (
	"context"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/session"
)

// signalMessage and signalResolved are wire's permanent names; store does not import wire.
const (
	signalMessage  = "tarry.message"
	signalResolved = "tarry.resolved"
)

// Post implements [session.Log]. The message and the nudge that announces it are one transaction: what was accepted is
// processed, also when the caller dies before it could signal.
func (s *Store) Post(ctx context.Context, owner agent.Owner, id, definition, mode string, m session.Message) error {
	m.Event.Actions = session.Actions{StateDelta: session.ClientDelta(m.StateDelta)}
	body, err := encode(m.Event)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(c *conn) error {
		row, err := c.lockedSession(owner, id)
		if err != nil {
			return err
		}
		if repeated, err := c.posted(row, m, body); err != nil || repeated {
			return err
		}
		if row.Closed {
			return session.ErrClosed
		}
		var queued int
		if err := c.get(`SELECT COUNT(*) FROM inbox WHERE workflow_id = ? AND event = ''`, []any{row.WorkflowID}, []any{&queued}); err != nil {
			return err
		}
		if queued >= session.MaxQueued {
			return session.ErrFull
		}
		if row.Definition == "" {
			if _, err := c.exec(`UPDATE sessions SET definition = ?, mode = ? WHERE workflow_id = ?`, definition, mode, row.WorkflowID); err != nil {
				return err
			}
		}
		if _, err := c.exec(`INSERT INTO inbox (id, workflow_id, invocation, body, streaming, event, created) VALUES (?, ?, ?, ?, ?, '', ?)`,
			m.ID, row.WorkflowID, m.Invocation, body, flag(m.Streaming), c.now); err != nil {
			return err
		}
		if _, err := c.exec(`INSERT INTO invocations (id, workflow_id, status, denied, created, ended) VALUES (?, ?, 'queued', 0, ?, 0)`,
			m.Invocation, row.WorkflowID, c.now); err != nil {
			return err
		}
		if _, err := c.exec(`UPDATE sessions SET status = CASE WHEN status IN ('', 'idle') THEN 'running' ELSE status END, updated = ? WHERE workflow_id = ?`, c.now, row.WorkflowID); err != nil {
			return err
		}
		return c.send(row.WorkflowID, signalMessage, m.ID, map[string]string{"inbox": m.ID})
	})
}

// posted says whether the message was posted before. Only who chooses its id from what a client said can send it twice.
func (c *conn) posted(row session.Session, m session.Message, body string) (bool, error) {
	var workflow, invocation, said string
	err := c.get(`SELECT workflow_id, invocation, body FROM inbox WHERE id = ?`, []any{m.ID}, []any{&workflow, &invocation, &said})
	switch {
	case missing(err):
		return false, nil
	case err != nil:
		return false, err
	case workflow != row.WorkflowID || invocation != m.Invocation || said != body:
		return false, session.ErrRepeated
	}
	return true, nil
}

// Take implements [session.Log].
func (s *Store) Take(ctx context.Context, row session.Session, run, eventID string, heads []string) (r *session.Record, inbox string, err error) {
	err = s.tx(ctx, func(c *conn) error {
		r, inbox, err = c.take(row, run, eventID, heads, nil)
		return err
	})
	return r, inbox, err
}

// Retake implements [session.Log].
func (s *Store) Retake(ctx context.Context, row session.Session, run, eventID string, heads, announced []string) (r *session.Record, inbox string, err error) {
	err = s.tx(ctx, func(c *conn) error {
		r, inbox, err = c.take(row, run, eventID, heads, announced)
		return err
	})
	return r, inbox, err
}

// take takes the next message, or with announced ones the first of those that a run which was replaced has taken.
func (c *conn) take(row session.Session, run, eventID string, heads, announced []string) (*session.Record, string, error) {
	_, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
	if err != nil {
		return nil, "", err
	}
	if err := c.enter(at, run); err != nil {
		return nil, "", err
	}
	items, err := collect(c, `SELECT id, invocation, body, event FROM inbox WHERE workflow_id = ? AND event = ?`, []any{row.WorkflowID, eventID}, scanInbox)
	if err == nil && len(items) == 0 && at.current { // a message that a replaced run took would be lost
		items, err = collect(c, `SELECT id, invocation, body, event FROM inbox WHERE workflow_id = ? AND event = '' ORDER BY seq LIMIT 1`, []any{row.WorkflowID}, scanInbox)
	}
	if err == nil && len(items) == 0 && announced != nil {
		var again *inboxItem
		if again, heads, err = c.retake(at, heads, announced); again != nil {
			items = []inboxItem{*again}
		}
	}
	if err != nil || len(items) == 0 {
		return nil, "", err
	}
	next := items[0]
	if heads == nil {
		heads = slices.Clone(at.tips)
	} else if heads, err = c.withPatch(at, run, heads); err != nil {
		return nil, "", err
	}
	e := session.NewEvent{Parents: heads, Kind: session.KindUser}
	if err := decode(next.body, &e.Event); err != nil {
		return nil, "", err
	}
	e.ID, e.InvocationID, e.Author = eventID, next.invocation, agent.UserAuthor
	if next.event != "" && next.event != eventID {
		if _, err := c.revive(at, next.invocation); err != nil {
			return nil, "", err
		}
	}
	records, err := c.appendAt(row, at, session.Append{Run: run, Events: []session.NewEvent{e}, Status: "running"})
	if err != nil {
		return nil, "", fmt.Errorf("append message: %w", err)
	}
	for _, update := range []struct {
		query string
		args  []any
	}{
		{`UPDATE inbox SET event = ? WHERE id = ?`, []any{eventID, next.id}},
		{`UPDATE invocations SET status = 'running' WHERE id = ? AND status = 'queued'`, []any{next.invocation}},
		{`UPDATE sessions SET invocation = ?, streaming = (SELECT streaming FROM inbox WHERE id = ?) WHERE workflow_id = ?`, []any{next.invocation, next.id, row.WorkflowID}},
	} {
		if _, err := c.exec(update.query, update.args...); err != nil {
			return nil, "", err
		}
	}
	return records[0], next.id, c.acted(next.id)
}

// dropQueued ends the messages that nobody will take: a nudge left over would start another run of a closed session, and
// whoever waits for their invocations would wait for ever.
func (c *conn) dropQueued(workflowID string) error {
	queued, err := collect(c, `SELECT id FROM inbox WHERE workflow_id = ? AND event = '' ORDER BY seq`, []any{workflowID}, func(scan func(...any) error) (id string, err error) {
		return id, scan(&id)
	})
	if err != nil {
		return err
	}
	for _, id := range queued {
		if err := c.acted(id); err != nil {
			return err
		}
		if _, err := c.exec(`UPDATE invocations SET status = 'cancelled', ended = ? WHERE id = (SELECT invocation FROM inbox WHERE id = ?) AND ended = 0`, c.now, id); err != nil {
			return err
		}
		if _, err := c.exec(`DELETE FROM inbox WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}
