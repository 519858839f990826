package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
)

// rules are what no row may be once everything rests: each query names the rows that are.
func rules() []struct{ invariant, what, query string } {
	return []struct{ invariant, what, query string }{
		// I4: what was decided is told, and what was told is done.
		{"I4", "message to a run was not delivered", `SELECT signal || ' of ' || workflow_id || ' about ' || subject FROM outbox WHERE done = 0`},
		{"I4", "request was granted, and no message tells the run", `SELECT id FROM requests WHERE status = 'granted'
			AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.subject = requests.id)`},
		{"I4", "message of a person was not taken", `SELECT inbox.id FROM inbox JOIN invocations ON invocations.id = inbox.invocation
			WHERE inbox.event = '' AND invocations.ended = 0`},
		{"I4", "invocation goes on and waits for nobody", `SELECT id FROM invocations WHERE ended = 0
			AND NOT EXISTS (SELECT 1 FROM requests WHERE requests.invocation = invocations.id AND requests.ended = 0)`},
		{"I4", "request is open, and its invocation has ended", `SELECT requests.id FROM requests JOIN invocations ON invocations.id = requests.invocation
			WHERE requests.ended = 0 AND invocations.ended <> 0`},
		{"I4", "request is open, and its session is closed", `SELECT requests.id FROM requests JOIN sessions ON sessions.workflow_id = requests.workflow_id
			WHERE requests.ended = 0 AND sessions.closed <> 0`},
		{"I4", "session is closed, and an invocation of it goes on", `SELECT invocations.id FROM invocations JOIN sessions ON sessions.workflow_id = invocations.workflow_id
			WHERE invocations.ended = 0 AND sessions.closed <> 0`},
		{"I4", "login hangs at the exchange of its code", `SELECT request FROM flows WHERE status = 'exchanging'`},
		{"I4", "request says that a code is being exchanged", `SELECT id FROM requests WHERE status = 'exchanging'`},
		{"I4", "request is open and has an end, or has ended and has none", `SELECT id FROM requests
			WHERE (ended = 0) <> (status IN ('pending', 'exchanging'))`},
		{"I4", "audit log does not say that a request was asked", `SELECT id FROM requests
			WHERE NOT EXISTS (SELECT 1 FROM audit WHERE audit.request = requests.id AND audit.action = 'asked')`},
		{"I4", "audit log does not say once how a request ended", `SELECT id || ' ' || status FROM requests WHERE ended <> 0
			AND (SELECT COUNT(*) FROM audit WHERE audit.request = requests.id AND audit.action IN ('granted', 'denied', 'expired', 'cancelled')) <> 1`},
		{"I4", "audit log says otherwise how a request ended", `SELECT requests.id || ' ' || requests.status || ' ' || audit.action FROM requests JOIN audit ON audit.request = requests.id
			WHERE audit.action IN ('granted', 'denied', 'expired', 'cancelled') AND audit.action <> requests.status`},
		// I7: what is of one person is of no other.
		{"I7", "credential is another's than the request's", `SELECT requests.id FROM requests JOIN grants ON grants.slot = requests.slot
			WHERE requests.app <> grants.app OR requests.usr <> grants.usr`},
		{"I7", "login is another's than the request's", `SELECT requests.id FROM requests JOIN flows ON flows.request = requests.id
			WHERE requests.app <> flows.app OR requests.usr <> flows.usr`},
		{"I7", "request is another's than the session's", `SELECT requests.id FROM requests JOIN sessions ON sessions.workflow_id = requests.workflow_id
			WHERE requests.app <> sessions.app OR requests.usr <> sessions.usr`},
		{"I7", "audit row about a request names another person", `SELECT requests.id FROM requests JOIN audit ON audit.request = requests.id
			WHERE requests.app <> audit.app OR requests.usr <> audit.usr`},
		// I8: nothing is left of what had begun.
		{"I8", "call has no answer, and its invocation has ended", `SELECT calls.id FROM calls JOIN invocations ON invocations.id = calls.invocation
			WHERE calls.answer = '' AND invocations.status = 'done'`},
	}
}

// CheckState returns what must not be in a database when nothing runs and nothing is being delivered: every invocation has ended
// or waits for a person.
func CheckState(ctx context.Context, db *sql.DB) (out []Violation, err error) {
	for _, rule := range rules() {
		err := each(ctx, db, rule.query, func(scan func(...any) error) error {
			var row string
			err := scan(&row)
			out = append(out, Violation{rule.invariant, rule.what + ": " + row})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.what, err)
		}
	}
	grants, err := grantsBySlot(ctx, db)
	if err != nil {
		return nil, err
	}
	query := `SELECT id, slot, status, need FROM requests ORDER BY seq`
	err = each(ctx, db, query, func(scan func(...any) error) error {
		var id, slot, status, body string
		if err := scan(&id, &slot, &status, &body); err != nil {
			return err
		}
		var need struct {
			Type           string
			Scopes, Wanted []string
			Refused        int64
		}
		if err := json.Unmarshal([]byte(body), &need); err != nil {
			return fmt.Errorf("read need: %w", err)
		}
		wanted := need.Scopes
		if need.Wanted != nil {
			wanted = need.Wanted
		}
		g, there := grants[slot]
		credential := !slices.Contains([]string{"confirmation", "input", "question", "result"}, need.Type)
		switch {
		case status == "granted" && credential && g.last == 0: // I10: who sends back that it was granted has given nothing
			out = append(out, Violation{"I10", "request was granted, and nothing was ever given: " + id})
		case status == "pending" && credential && there && g.version > need.Refused && subset(wanted, g.scopes):
			out = append(out, Violation{"I5", "request is open, and what it asks for is there: " + id})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return out, nil
}

// held is what a slot holds; last is the number of the last credential that it ever held, version 0 says that there is none now.
type held struct {
	version, last int64
	scopes        []string
}

func grantsBySlot(ctx context.Context, db *sql.DB) (map[string]held, error) {
	out := map[string]held{}
	const query = `SELECT versions.slot, versions.version, COALESCE(grants.version, 0), COALESCE(grants.scopes, '[]')
		FROM versions LEFT JOIN grants ON grants.slot = versions.slot`
	err := each(ctx, db, query, func(scan func(...any) error) error {
		var h held
		var slot, scopes string
		if err := scan(&slot, &h.last, &h.version, &scopes); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(scopes), &h.scopes)
		out[slot] = h
		return err //nolint:wrapcheck // wrapped by the caller
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return out, nil
}

func subset(wanted, of []string) bool {
	return !slices.ContainsFunc(wanted, func(scope string) bool { return !slices.Contains(of, scope) })
}
