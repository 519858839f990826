package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"tarry/session"
)

const callColumns = `id, invocation, event, agent, toolset, name, args, idempotent, started, answer, asking, asked`

func scanCall(scan func(...any) error) (session.Call, error) {
	var call session.Call
	var args string
	err := scan(&call.ID, &call.Invocation, &call.Event, &call.Agent, &call.Toolset, &call.Name, &args, &call.Idempotent, &call.Started, &call.Answer, &call.Asking, &call.Asked)
	call.Args = json.RawMessage(args)
	return call, err
}

func (c *conn) insertCall(row session.Session, call session.Call) error {
	_, err := c.exec(`INSERT INTO calls (id, workflow_id, invocation, event, agent, toolset, name, args, idempotent, started, answer, asking, asked)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, '', 0) ON CONFLICT (id) DO NOTHING`,
		call.ID, row.WorkflowID, call.Invocation, call.Event, call.Agent, call.Toolset, call.Name, string(call.Args), flag(call.Idempotent), call.Answer)
	return err
}

// Call implements [session.Log].
func (s *Store) Call(ctx context.Context, row session.Session, id string) (session.Call, error) {
	return s.read(ctx).call(row, id)
}

func (c *conn) call(row session.Session, id string) (session.Call, error) {
	found, err := collect(c, `SELECT `+callColumns+` FROM calls WHERE workflow_id = ? AND id = ?`, []any{row.WorkflowID, id}, scanCall)
	switch {
	case err != nil:
		return session.Call{}, err
	case len(found) == 0:
		return session.Call{}, session.ErrNotFound
	}
	found[0].Session = row.ID
	found[0].Last, err = c.last(row.WorkflowID, found[0])
	return found[0], err
}

// last finds where a call's next event goes. Calls of several agents may wait for one login, which one of them asked for: the
// others do not go on behind its question, where their own words are not.
func (c *conn) last(workflowID string, call session.Call) (string, error) {
	for id := call.Asking; id != "" && id != call.Event; {
		found, err := c.events(workflowID, []string{id})
		if err != nil {
			return "", err
		}
		if len(found) == 0 || len(found[0].Parents) != 1 || found[0].Kind != session.KindRequest && found[0].Kind != session.KindInterim {
			return call.Event, nil
		}
		id = found[0].Parents[0]
	}
	return cmp.Or(call.Asking, call.Event), nil
}

// Start implements [session.Log].
func (s *Store) Start(ctx context.Context, row session.Session, id string) (session.Call, error) {
	c := s.read(ctx)
	call, err := c.call(row, id)
	if err != nil || call.Answer != "" || call.Started || call.Unmarked() {
		return call, err
	}
	// One statement is a transaction of its own; of several that come here at once it succeeds for one.
	n, err := c.exec(`UPDATE calls SET started = 1 WHERE workflow_id = ? AND id = ? AND started = 0 AND answer = ''`, row.WorkflowID, id)
	if err != nil || n == 1 {
		return call, err
	}
	return c.call(row, id)
}

// ReleaseCall implements [session.Log].
func (s *Store) ReleaseCall(ctx context.Context, row session.Session, id string) error {
	return s.read(ctx).release(row, id)
}

// release gives a call's mark back in the caller's transaction.
func (c *conn) release(row session.Session, id string) error {
	_, err := c.exec(`UPDATE calls SET started = 0 WHERE workflow_id = ? AND id = ? AND answer = ''`, row.WorkflowID, id)
	return err
}

// answer ties a call to its one answer. An attempt that was given up and still runs finds that the call has another: two
// responses to one call would stand in the model's view.
func (c *conn) answer(row session.Session, id, event string) error {
	n, err := c.exec(`UPDATE calls SET answer = ?, started = 0 WHERE id = ? AND workflow_id = ? AND answer IN ('', ?)`, event, id, row.WorkflowID, event)
	if err != nil || n == 1 {
		return err
	}
	call, err := c.call(row, id)
	if err != nil {
		return fmt.Errorf("answer call %s: %w", id, err)
	}
	return fmt.Errorf("%w: %s by %s", session.ErrAnswered, id, call.Answer)
}

// Open implements [session.Log].
func (s *Store) Open(ctx context.Context, row session.Session, invocation string, heads []string) ([]session.Call, error) {
	return s.read(ctx).open(row, invocation, heads)
}

func (c *conn) open(row session.Session, invocation string, heads []string) ([]session.Call, error) {
	calls, err := collect(c, `SELECT `+callColumns+` FROM calls WHERE workflow_id = ? AND invocation = ? AND answer = '' ORDER BY seq`,
		[]any{row.WorkflowID, invocation}, scanCall)
	if err != nil || len(calls) == 0 {
		return calls, err
	}
	tips, err := c.tips(row.WorkflowID)
	if err != nil {
		return nil, err
	}
	seen, err := c.seen(row.WorkflowID, append(tips, heads...))
	if err != nil {
		return nil, err
	}
	calls = slices.DeleteFunc(calls, func(call session.Call) bool { return seen[call.Event] == nil })
	for i := range calls {
		if calls[i].Last, err = c.last(row.WorkflowID, calls[i]); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// Finish implements [session.Log].
func (s *Store) Finish(ctx context.Context, row session.Session, end session.Ending) (tips []string, err error) {
	err = s.tx(ctx, func(c *conn) error {
		_, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
		if err != nil {
			return err
		}
		end.Append.Run = end.Run
		if _, err := c.appendAt(row, at, end.Append); err != nil {
			return err
		}
		if at.current && at.tipsRun != end.Run && at.tipsRun != "" && len(end.Heads) > 0 {
			if at.tips, err = c.restart(at, end.Heads); err != nil {
				return err
			}
			at.tipsRun, at.moved = end.Run, true
			if err := c.save(at, ""); err != nil {
				return err
			}
		}
		if err := c.join(at, end); err != nil {
			return err
		}
		tips = at.tips
		if !at.current {
			return nil
		}
		if _, err := c.revive(at, end.Invocation); err != nil {
			return err
		}
		return c.finish(row, end)
	})
	return tips, err
}

// join makes where the workflow stands part of the session again: after a reset, what is said in one branch of a ParallelAgent
// drops what another branch had said before, until that one says something more.
func (c *conn) join(at *stand, end session.Ending) error {
	missing := slices.DeleteFunc(slices.Clone(end.Heads), func(id string) bool {
		return slices.Contains(at.tips, id) || slices.ContainsFunc(end.Append.Events, func(e session.NewEvent) bool { return slices.Contains(e.Parents, id) })
	})
	if !at.current || len(missing) == 0 {
		return nil
	}
	seen, err := c.seen(at.workflowID, at.tips)
	if err != nil {
		return err
	}
	for _, id := range missing {
		if seen[id] == nil {
			at.tips, at.moved = append(at.tips, id), true
		}
	}
	return c.save(at, "")
}

func (c *conn) finish(row session.Session, end session.Ending) error {
	if err := c.cancelRequests(row.WorkflowID, end.Invocation, "invocation ended"); err != nil {
		return err
	}
	if _, err := c.exec(`UPDATE invocations SET status = ?, denied = ?, ended = ? WHERE id = ? AND ended = 0`, end.Status, flag(end.Denied), c.now, end.Invocation); err != nil {
		return err
	}
	if row.Streaming { // of an answer that was cut off
		if _, err := c.exec(`DELETE FROM partials WHERE workflow_id = ? AND invocation = ?`, row.WorkflowID, end.Invocation); err != nil {
			return err
		}
	}
	status := "idle"
	if end.Closed {
		status = end.Status
		if err := c.dropQueued(row.WorkflowID); err != nil {
			return err
		}
	}
	_, err := c.exec(`UPDATE sessions SET status = ?, closed = ?, updated = ? WHERE workflow_id = ?`, status, flag(end.Closed), c.now, row.WorkflowID)
	return err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
