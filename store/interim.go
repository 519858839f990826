package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

// Bounds of what one call may show before its final result: a session is read as a whole, by models and by clients.
const (
	maxInterim      = 500
	maxInterimBytes = 4 << 20 // of JSON
)

// Interim adds an interim result to a long-running call that waits, and returns the status of its request: only where that is
// pending something was stored. The same result again is stored once. Requests of other types are [oauth.ErrConflict], and what is
// more than one call may show is an [*auth.AnswerError].
func (s *Store) Interim(ctx context.Context, id string, access auth.Access, response map[string]any) (status auth.Status, err error) {
	err = s.tx(ctx, func(c *conn) error {
		r, err := c.request(id)
		if err != nil {
			return err
		}
		if !access(r.Owner) {
			return oauth.ErrNotFound
		}
		if r.Need.Type != auth.TypeResult {
			return oauth.ErrConflict
		}
		_, at, err := c.lockedStand(byWorkflow, r.WorkflowID) // sessions are locked before slots
		if err != nil {
			return err
		}
		if r, err = c.locked(id); err != nil {
			return err
		}
		if status = r.Status; status != auth.StatusPending {
			return nil
		}
		if !r.Deadline.IsZero() && micros(r.Deadline) <= c.now {
			status = auth.StatusExpired // the run closes it
			return nil
		}
		fits, err := c.interim(at, r, response)
		if err == nil && !fits {
			status = auth.StatusCancelled
		}
		return err
	})
	return status, err
}

// interim appends the event behind the last one of the call. It does nothing for a call that a reset has left behind, which
// must not come back into the session.
func (c *conn) interim(at *stand, r auth.Request, response map[string]any) (fits bool, err error) {
	row := session.Session{ID: r.Session, WorkflowID: r.WorkflowID, Owner: r.Owner}
	call, err := c.call(row, r.Call)
	if err != nil {
		return false, err
	}
	all, err := c.events(r.WorkflowID, nil)
	if err != nil {
		return false, err
	}
	view, _ := session.Ancestors(index(all), at.tips)
	seen := index(view)
	last, made := seen[call.Asking], seen[call.Event]
	if last == nil || made == nil || call.Answer != "" {
		return false, nil
	}
	if last.Kind == session.KindInterim && len(last.Responses()) == 1 && same(last.Responses()[0].Response, response) {
		return true, nil
	}
	if err := fitsInterim(all, r.Call, response); err != nil {
		return false, err
	}
	e := session.Interim(call, uuid.NewString(), []string{last.ID}, response)
	e.Branch, e.IsolationScope = made.Branch, made.IsolationScope
	record, _, err := c.insertEvent(row, e)
	if err != nil {
		return false, err
	}
	at.tips, at.moved = append(slices.DeleteFunc(at.tips, func(id string) bool { return id == last.ID }), record.ID), true // by no run
	if err := c.save(at, ""); err != nil {
		return false, err
	}
	_, err = c.exec(`UPDATE calls SET asking = ? WHERE id = ? AND workflow_id = ?`, record.ID, call.ID, r.WorkflowID)
	return true, err
}

// fitsInterim counts what a reset has left behind too.
func fitsInterim(all []*session.Record, call string, response map[string]any) error {
	body, err := json.Marshal(response)
	if err != nil {
		return &auth.AnswerError{Text: "the result is not JSON"}
	}
	n, size := 0, len(body)
	for _, r := range all {
		if r.Kind == session.KindInterim && len(r.Responses()) == 1 && r.Responses()[0].ID == call {
			n, size = n+1, size+len(r.Body)
		}
	}
	if n >= maxInterim || size > maxInterimBytes {
		return &auth.AnswerError{Text: fmt.Sprintf("call %s has shown as much as it may, %d interim results of %d bytes in all; send the final one", call, maxInterim, maxInterimBytes)}
	}
	return nil
}

func same(a, b map[string]any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
