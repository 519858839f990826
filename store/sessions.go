package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"tarry/agent"
	"tarry/session"
)

var _ session.Log = (*Store)(nil)

const sessionColumns = `workflow_id, app, usr, id, definition, mode, initial, patched, status, invocation, streaming, closed, created, updated`

func scanSession(scan func(...any) error) (session.Session, error) {
	var s session.Session
	var initial, patched string
	var created, updated int64
	err := scan(&s.WorkflowID, &s.Owner.App, &s.Owner.User, &s.ID, &s.Definition, &s.Mode, &initial, &patched, &s.Status, &s.Invocation, &s.Streaming, &s.Closed, &created, &updated)
	if err != nil {
		return s, err
	}
	s.Created, s.Updated = at(created), at(updated)
	if patched != "{}" {
		if err := decode(patched, &s.Patched); err != nil {
			return s, err
		}
	}
	return s, decode(initial, &s.Initial)
}

// Create implements [session.Log].
func (s *Store) Create(ctx context.Context, n session.Session, events ...session.NewEvent) error {
	if err := n.Owner.Validate(); err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	shared := session.ClientDelta(n.Initial)
	own := maps.Clone(shared)
	maps.DeleteFunc(own, func(key string, _ any) bool { return strings.HasPrefix(key, session.ScopeUser) })
	initial, err := encode(own)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(c *conn) error {
		_, err := c.exec(`INSERT INTO sessions (workflow_id, app, usr, id, definition, mode, initial, status, invocation, run, tips, tips_run, closed, created, updated)
			VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '', '[]', '', 0, ?, ?)`,
			n.WorkflowID, n.Owner.App, n.Owner.User, n.ID, n.Definition, n.Mode, initial, c.now, c.now)
		if s.d.unique(err) {
			return session.ErrExists
		}
		if err != nil {
			return err
		}
		if err := c.applyScoped(n.Owner, shared); err != nil || len(events) == 0 {
			return err
		}
		return c.append(n, session.Append{Events: events})
	})
}

// Session implements [session.Log].
func (s *Store) Session(ctx context.Context, owner agent.Owner, id string) (session.Session, error) {
	return s.read(ctx).session(owner, id)
}

// Standing implements [session.Log].
func (s *Store) Standing(ctx context.Context, owner agent.Owner, id string) (session.Session, error) {
	return s.read(ctx).oneStanding(byOwner, owner.App, owner.User, id)
}

// oneStanding leaves the columns of the state out.
func (c *conn) oneStanding(where string, args ...any) (session.Session, error) {
	return sole(collect(c, `SELECT `+strings.Replace(sessionColumns, "initial, patched", "'{}', '{}'", 1)+` FROM sessions WHERE `+where, args, scanSession))
}

func (c *conn) session(owner agent.Owner, id string) (session.Session, error) {
	return c.oneSession(byOwner, owner.App, owner.User, id)
}

// ByWorkflow implements [session.Log].
func (s *Store) ByWorkflow(ctx context.Context, workflowID string) (session.Session, error) {
	return s.read(ctx).oneSession(byWorkflow, workflowID)
}

func (c *conn) oneSession(where string, args ...any) (session.Session, error) {
	return sole(collect(c, `SELECT `+sessionColumns+` FROM sessions WHERE `+where, args, scanSession))
}

func sole(found []session.Session, err error) (session.Session, error) {
	if err != nil {
		return session.Session{}, err
	}
	if len(found) == 0 {
		return session.Session{}, session.ErrNotFound
	}
	return found[0], nil
}

// Sessions implements [session.Log].
func (s *Store) Sessions(ctx context.Context, owner agent.Owner, limit int) ([]session.Session, error) {
	return collect(s.read(ctx), `SELECT `+sessionColumns+` FROM sessions WHERE app = ? AND usr = ? ORDER BY seq DESC LIMIT ?`,
		[]any{owner.App, owner.User, limit}, scanSession)
}

// Delete implements [session.Log]. Grants, audit rows and user: artifacts stay: they are the person's, not the session's. What
// was added to memory goes, since nothing else could make it go. Logins that were
// begun go, and with them the codes and verifiers that nobody will use.
func (s *Store) Delete(ctx context.Context, owner agent.Owner, id string) error {
	return s.tx(ctx, func(c *conn) error {
		row, err := c.lockedSession(owner, id)
		if err != nil {
			return err
		}
		if err := c.cancelRequests(row.WorkflowID, "", "session deleted"); err != nil {
			return err
		}
		const ofSession = ` WHERE request IN (SELECT id FROM requests WHERE workflow_id = ?)`
		for _, query := range []string{
			`DELETE FROM refused_codes WHERE state_hash IN (SELECT state_hash FROM flows` + ofSession + `)`,
			`DELETE FROM flows` + ofSession,
		} {
			if _, err := c.exec(query, row.WorkflowID); err != nil {
				return err
			}
		}
		for _, table := range []string{"sessions", "runs", "events", "inbox", "invocations", "calls", "listings", "requests", "outbox", "artifacts", "memories", "partials"} {
			if _, err := c.exec(`DELETE FROM `+table+` WHERE workflow_id = ?`, row.WorkflowID); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetStatus implements [session.Log].
func (s *Store) SetStatus(ctx context.Context, row session.Session, run, status string) error {
	return s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
		if err != nil {
			return err
		}
		if err := c.enter(at, run); err != nil || !at.current {
			return err
		}
		if at.replaced && row.Mode == "job" { // the one invocation of a job; a chat's is known by what it says next
			if _, err := c.revive(at, row.Invocation); err != nil {
				return err
			}
		}
		_, err = c.exec(`UPDATE sessions SET status = ?, updated = ? WHERE workflow_id = ?`, status, c.now, row.WorkflowID)
		return err
	})
}

// Continue implements [session.Log].
func (s *Store) Continue(ctx context.Context, row session.Session, run string) error {
	return s.tx(ctx, func(c *conn) error {
		_, at, err := c.lockedStand(byWorkflow, row.WorkflowID)
		if err != nil {
			return err
		}
		if err := c.enter(at, run); err != nil || !at.current {
			return err
		}
		at.tipsRun, at.moved = run, true
		return c.save(at, "")
	})
}

// Invocation implements [session.Log].
func (s *Store) Invocation(ctx context.Context, owner agent.Owner, id string) (session.Invocation, error) {
	found, err := collect(s.read(ctx), `SELECT i.id, s.id, i.status, i.denied, i.created, i.ended FROM invocations i
		JOIN sessions s ON s.workflow_id = i.workflow_id WHERE i.id = ? AND s.app = ? AND s.usr = ?`, []any{id, owner.App, owner.User},
		func(scan func(...any) error) (session.Invocation, error) {
			var i session.Invocation
			var created, ended int64
			err := scan(&i.ID, &i.Session, &i.Status, &i.Denied, &created, &ended)
			i.Created, i.Ended = at(created), at(ended)
			return i, err
		})
	switch {
	case err != nil:
		return session.Invocation{}, err
	case len(found) == 0:
		return session.Invocation{}, session.ErrNotFound
	}
	return found[0], nil
}

func encode(v any) (string, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return clean(string(body)), nil
}

func decode(body string, v any) error {
	if body == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		return fmt.Errorf("decode: %w", errors.Join(err))
	}
	return nil
}
