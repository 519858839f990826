package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tarry/agent"
	"tarry/auth"
)

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

	auditSignedIn      = "signed_in"
	auditSignedOut     = "signed_out"
	auditSignInRefused = "signin_refused"
)

// audit writes a row in the transaction of the change that it tells of. detail holds names and reasons from our own
// vocabulary, never a secret and nothing that a provider or client wrote.
func (c *conn) audit(owner agent.Owner, session, request, action, detail string) error {
	actor := auth.Actor(c.ctx)
	_, err := c.exec(`INSERT INTO audit (at, app, usr, session, request, action, detail, actor) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.now, owner.App, owner.User, session, request, action, detail, sql.NullString{String: clean(actor), Valid: actor != ""})
	return err
}

const auditColumns = `seq, at, app, usr, session, request, action, detail, actor`

func scanAudit(scan func(...any) error) (a auditRow, err error) {
	var when int64
	var actor sql.NullString
	err = scan(&a.seq, &when, &a.Owner.App, &a.Owner.User, &a.Session, &a.Request, &a.Action, &a.Detail, &actor)
	a.At, a.Actor = at(when), actor.String
	return a, err
}

type auditRow struct {
	auth.AuditRow
	seq int64
}

// Audit reads on from a cursor, oldest first, in an order that never changes and leaves nothing out: a row appears only when
// every row before it is there. It looks at no more than limit rows of those that q selects, and returns the ones among them
// that access allows; the page tells whether there are more.
func (s *Store) Audit(ctx context.Context, q auth.AuditQuery, access auth.Access, limit int) (auth.AuditPage, error) {
	var after int64
	if q.After != "" {
		var err error
		if after, err = seqOf(cursorAudit, q.After); err != nil {
			return auth.AuditPage{}, err
		}
	}
	last, err := s.d.settled(ctx, s.read(ctx))
	if err != nil {
		return auth.AuditPage{}, fmt.Errorf("read audit log: %w", err)
	}
	where, args := []string{`seq > ? AND seq <= ?`}, []any{after, last}
	for _, filter := range []struct {
		column string
		value  any
		set    bool
	}{
		{`app = ?`, q.App, q.App != ""},
		{`usr = ?`, q.User, q.User != ""},
		{`action = ?`, q.Action, q.Action != ""},
		{`at >= ?`, micros(q.Since), !q.Since.IsZero()},
		{`at < ?`, micros(q.Until), !q.Until.IsZero()},
	} {
		if filter.set {
			where, args = append(where, filter.column), append(args, filter.value)
		}
	}
	rows, err := collect(s.read(ctx), `SELECT `+auditColumns+` FROM audit WHERE `+strings.Join(where, ` AND `)+` ORDER BY seq LIMIT ?`,
		append(args, limit), scanAudit)
	if err != nil {
		return auth.AuditPage{}, err
	}
	if len(rows) > 0 {
		after = rows[len(rows)-1].seq
	}
	return auth.AuditPage{Rows: plainRows(rows, access), Next: cursorOf(cursorAudit, after), More: len(rows) == limit}, nil
}

func plainRows(rows []auditRow, access auth.Access) []auth.AuditRow {
	out := []auth.AuditRow{}
	for _, r := range rows {
		owner := r.Owner
		if owner.App == "" { // a sign-in is to no app: whoever may act for the person in any app may read it
			owner.App = uuid.NewString()
		}
		if access(owner) {
			out = append(out, r.AuditRow)
		}
	}
	return out
}

// everything is settled where writers take turns: rows appear in the order of their numbers.
func everything(context.Context, *conn) (int64, error) { return 1<<63 - 1, nil }

// settledPoll is how often the end of a transaction is looked for, settledPatience for how long; idleTimeout ends those that
// have been forgotten.
const (
	settledPoll     = 10 * time.Millisecond
	settledPatience = 20 * time.Second
)

var errUnsettled = errors.New("a transaction that writes audit rows does not end")

// writers are the transactions that have written audit rows, or are about to, and have not ended.
const writers = `SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = 'audit'::regclass AND mode = 'RowExclusiveLock' AND granted`

// settled waits, in PostgreSQL, for the transactions that may hold a number below the newest one: rows get their numbers when
// they are written and appear when their transaction ends. Nobody waits for the reader.
func settled(ctx context.Context, c *conn) (last int64, err error) {
	if err := c.get(`SELECT COALESCE(MAX(seq), 0) FROM audit`, nil, []any{&last}); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, settledPatience)
	defer cancel()
	var open []string
	for first := true; ; first = false {
		found, err := collect(c, writers, nil, func(scan func(...any) error) (id string, err error) { return id, scan(&id) })
		if err != nil {
			return 0, err
		}
		if first {
			open = found
		}
		open = slices.DeleteFunc(open, func(id string) bool { return !slices.Contains(found, id) })
		if len(open) == 0 {
			return last, nil
		}
		wait := time.NewTimer(settledPoll)
		select {
		case <-ctx.Done():
			wait.Stop()
			return 0, errors.Join(errUnsettled, ctx.Err())
		case <-wait.C:
		}
	}
}
