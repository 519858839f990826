package invariants_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/e2e/invariants"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

// A database at rest, and each way in which it may not be.
func TestCheckState(t *testing.T) {
	t.Parallel()
	s, path := streamtest.Open(t)
	p := streamtest.New(t, s, agent.Owner{App: "tickets", User: "ann"}, "s1")
	p.Post("hello", wire.ModeJob)
	p.Take()
	p.Say("", "c1", "c2")
	granted := p.AskOnly("c1", "r1")
	p.Grant(granted.ID)
	p.Respond("c1", "r1")
	open := p.AskOnly("c2", "r2")
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	check := func() []invariants.Violation {
		found, err := invariants.CheckState(t.Context(), db)
		require.NoError(t, err)
		return found
	}
	exec := func(query string) {
		t.Helper()
		result, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err, query)
		rows, err := result.RowsAffected()
		require.NoError(t, err)
		require.Positive(t, rows, query)
	}
	exec(`UPDATE outbox SET done = 1`)
	require.Empty(t, check())

	for _, c := range []struct{ rule, text, do, undo string }{
		{"I4", "not delivered", `UPDATE outbox SET done = 0`, `UPDATE outbox SET done = 1`},
		{"I4", "no message tells", `UPDATE outbox SET subject = subject || 'x'`, `UPDATE outbox SET subject = substr(subject, 1, length(subject) - 1)`},
		{"I4", "waits for nobody", `UPDATE requests SET ended = 1 WHERE id = '` + open.ID + `'`, `UPDATE requests SET ended = 0 WHERE id = '` + open.ID + `'`},
		{"I4", "its invocation has ended", `UPDATE invocations SET ended = 1`, `UPDATE invocations SET ended = 0`},
		{"I4", "session is closed", `UPDATE sessions SET closed = 1`, `UPDATE sessions SET closed = 0`},
		{"I4", "being exchanged", `UPDATE requests SET status = 'exchanging' WHERE ended = 0`, `UPDATE requests SET status = 'pending' WHERE ended = 0`},
		{"I4", "was asked", `UPDATE requests SET id = 'other' WHERE ended = 0`, `UPDATE requests SET id = '` + open.ID + `' WHERE ended = 0`},
		{"I4", "says otherwise", `UPDATE requests SET status = 'denied' WHERE id = '` + granted.ID + `'`, `UPDATE requests SET status = 'granted' WHERE id = '` + granted.ID + `'`},
		{"I7", "session's", `UPDATE sessions SET usr = 'ben'`, `UPDATE sessions SET usr = 'ann'`},
		{"I7", "names another person", `UPDATE requests SET usr = 'ben'`, `UPDATE requests SET usr = 'ann'`},
		{"I7", "credential is another's", `UPDATE grants SET usr = 'ben'`, `UPDATE grants SET usr = 'ann'`},
		{"I8", "has no answer", `UPDATE invocations SET status = 'done'`, `UPDATE invocations SET status = 'running'`},
		{"I5", "is there", `UPDATE requests SET status = 'pending', ended = 0 WHERE id = '` + granted.ID + `'`, `UPDATE requests SET status = 'granted', ended = 1 WHERE id = '` + granted.ID + `'`},
		{"I10", "nothing was ever given", `UPDATE versions SET slot = slot || 'x'`, `UPDATE versions SET slot = substr(slot, 1, length(slot) - 1)`},
	} {
		exec(c.do)
		found := check()
		require.NotEmpty(t, found, c.text)
		var texts []string
		for _, v := range found {
			texts = append(texts, v.String())
		}
		require.Regexp(t, c.rule+": .*"+c.text, texts)
		exec(c.undo)
		require.Empty(t, check(), c.text)
	}
}
