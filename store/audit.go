package store

import (
	"context"
	"time"

	"tarry/agent"
)

// Audit is one row of the audit table. Detail holds names and reasons from our own vocabulary, never a secret and nothing
// that a provider or client wrote.
type Audit struct {
	At      time.Time
	Owner   agent.Owner
	Session string
	Request string
	Action  string
	Detail  string
}

// Actions of the audit table.
const (
	auditAsked     = "asked"
	auditOpened    = "opened"
	auditReminded  = "reminded"
	auditRefused   = "refused"
	auditGranted   = "granted"
	auditDenied    = "denied"
	auditExpired   = "expired"
	auditCancelled = "cancelled"
	auditReopened  = "reopened"
	auditRefreshed = "refreshed"
	auditMoved     = "moved"
	auditUsed      = "used"
	auditDropped   = "dropped"
)

// audit writes a row in the transaction of the change that it tells of.
func (c *conn) audit(owner agent.Owner, session, request, action, detail string) error {
	_, err := c.exec(`INSERT INTO audit (at, app, usr, session, request, action, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		c.now, owner.App, owner.User, session, request, action, detail)
	return err
}

// AuditLog lists an owner's rows, newest first.
func (s *Store) AuditLog(ctx context.Context, owner agent.Owner, limit int) ([]Audit, error) {
	return collect(s.read(ctx), `SELECT at, app, usr, session, request, action, detail FROM audit WHERE app = ? AND usr = ? ORDER BY seq DESC LIMIT ?`,
		[]any{owner.App, owner.User, limit}, func(scan func(...any) error) (a Audit, err error) {
			var when int64
			err = scan(&when, &a.Owner.App, &a.Owner.User, &a.Session, &a.Request, &a.Action, &a.Detail)
			a.At = at(when)
			return a, err
		})
}
