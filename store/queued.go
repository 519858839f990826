package store

import (
	"context"

	"tarry/session"
)

// Queued says whether a message of the session waits to be taken, and whether an answer to the invocation's requests is on its
// way: a person has given it, and no run has acted on it yet.
func (s *Store) Queued(ctx context.Context, row session.Session, invocation string) (message, answer bool, err error) {
	var messages, answers int
	// One statement, so that both are as of one instant.
	err = s.read(ctx).get(`SELECT (SELECT COUNT(*) FROM inbox WHERE workflow_id = ? AND event = ''),
		(SELECT COUNT(*) FROM requests WHERE workflow_id = ? AND invocation = ? AND (status = 'exchanging'
			OR EXISTS (SELECT 1 FROM outbox WHERE outbox.subject = requests.id AND outbox.done = 0)))`,
		[]any{row.WorkflowID, row.WorkflowID, invocation}, []any{&messages, &answers})
	return messages > 0, answers > 0, err
}
