package store

import (
	"context"

	"tarry/auth"
	"tarry/session"
)

// SessionOfEvent finds the session that has an event, whoever's it is: the caller asks whether it may be told.
func (s *Store) SessionOfEvent(ctx context.Context, event string) (session.Session, error) {
	return s.read(ctx).oneSession(`workflow_id = (SELECT workflow_id FROM events WHERE events.id = ?)`, event)
}

// SessionsCalled finds sessions by their id alone, newest first, in one app or, if that is empty, in all; whoever's they are.
func (s *Store) SessionsCalled(ctx context.Context, app, id string, limit int) ([]session.Session, error) {
	where, args := `id = ?`, []any{id}
	if app != "" {
		where, args = where+` AND app = ?`, append(args, app)
	}
	return collect(s.read(ctx), `SELECT `+sessionColumns+` FROM sessions WHERE `+where+` ORDER BY seq DESC LIMIT ?`, append(args, limit), scanSession)
}

// SessionRequests lists what a session's person was asked, newest first, ended requests too.
func (s *Store) SessionRequests(ctx context.Context, row session.Session, limit int) ([]auth.Request, error) {
	return s.read(ctx).requests(`workflow_id = ? ORDER BY seq DESC LIMIT ?`, row.WorkflowID, limit)
}
