package store

import (
	"tarry/agent"
	"tarry/session"
)

// Which session; see oneSession and lockedStand.
const (
	byOwner    = `app = ? AND usr = ? AND id = ?`
	byWorkflow = `workflow_id = ?`
)

// stand is where a locked session stands. It is read once, with the lock, and written once, by save.
type stand struct {
	workflowID string
	run        string // the newest
	tips       []string
	tipsRun    string // the run that moved them last
	current    bool   // whoever writes does it for the newest run; see enter
	replaced   bool   // that run has entered just now, after another
	moved      bool
	repeated   bool   // what a model or an agent has said was stored before
	patch      string // the newest event by which a client wrote state; empty for none
	// goesOn is the session's invocation if that has not ended; else empty.
	goesOn string
}

// lockedStand reads a session that no other transaction can change before this one ends. A database that lets several
// write at once needs it wherever what is written depends on what was read. Sessions are locked before slots.
func (c *conn) lockedStand(where string, args ...any) (session.Session, *stand, error) {
	var at stand
	found, err := collect(c, `UPDATE sessions SET run = run WHERE `+where+` RETURNING `+sessionColumns+`, run, tips, tips_run, patch,
		COALESCE((SELECT ended FROM invocations WHERE invocations.id = sessions.invocation), 1), `+c.d.clock, args,
		func(scan func(...any) error) (session.Session, error) {
			var tips string
			var ended, now int64
			row, err := scanSession(func(dest ...any) error {
				return scan(append(dest, &at.run, &tips, &at.tipsRun, &at.patch, &ended, &now)...)
			})
			if err != nil {
				return row, err
			}
			c.passed(now)
			at.workflowID = row.WorkflowID
			if ended == 0 {
				at.goesOn = row.Invocation
			}
			return row, decode(tips, &at.tips)
		})
	if err != nil {
		return session.Session{}, nil, err
	}
	if len(found) == 0 {
		return session.Session{}, nil, session.ErrNotFound
	}
	return found[0], &at, nil
}

func (c *conn) lockedSession(owner agent.Owner, id string) (session.Session, error) {
	row, _, err := c.lockedStand(byOwner, owner.App, owner.User, id)
	return row, err
}

// enter says whether run is the newest of the session. A run is seen for the first time when it becomes current; one that
// was seen before and is not current has been replaced, by a reset or by continuing as new. What no run does replaces none.
func (c *conn) enter(at *stand, run string) error {
	at.current = at.run == run
	if at.current || run == "" {
		return nil
	}
	fresh, err := c.exec(`INSERT INTO runs (workflow_id, run, entered) VALUES (?, ?, ?) ON CONFLICT (workflow_id, run) DO NOTHING`, at.workflowID, run, c.now)
	if err != nil || fresh == 0 {
		return err
	}
	if _, err := c.exec(`UPDATE sessions SET run = ? WHERE workflow_id = ?`, run, at.workflowID); err != nil {
		return err
	}
	at.replaced = at.run != ""
	at.run, at.current = run, true
	return nil
}

// save stores the tips that moved, and the status if it is not empty.
func (c *conn) save(at *stand, status string) error {
	if !at.moved && status == "" {
		return nil
	}
	body, err := encode(at.tips)
	if err != nil {
		return err
	}
	_, err = c.exec(`UPDATE sessions SET tips = ?, tips_run = ?, status = CASE WHEN ? = '' THEN status ELSE ? END, updated = ? WHERE workflow_id = ?`,
		body, at.tipsRun, status, status, c.now, at.workflowID)
	at.moved = false
	return err
}
