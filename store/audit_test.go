package store_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// export reads the audit log page by page.
func (k *kit) export(q auth.AuditQuery, access auth.Access, limit int) (actions []string, last string) {
	k.Helper()
	for {
		page, err := k.s.Audit(k.ctx, q, access, limit)
		require.NoError(k, err)
		for _, row := range page.Rows {
			actions = append(actions, row.Owner.App+"/"+row.Owner.User+" "+row.Action)
		}
		if q.After = page.Next; !page.More {
			return actions, page.Next
		}
	}
}

func auditCases() []testCase {
	return []testCase{
		{"audit/exported whole, in order, by any page size", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			require.NoError(k, k.s.Refuse(k.ctx, state, "browser", "hash", 9))
			k.login(request, "read")
			k.waiting(bob, "s", "read")
			k.waiting(sameName, "s", "read")
			of := []string{"planner/ann asked", "planner/ann opened", "planner/ann refused", "planner/ann opened", "planner/ann granted"}
			all := append(append([]string{}, of...), "planner/bob asked", "writer/ann asked")
			for limit := 1; limit < 9; limit++ {
				got, _ := k.export(auth.AuditQuery{}, anyone, limit)
				require.Equal(k, all, got)
				got, _ = k.export(auth.AuditQuery{User: "ann"}, anyone, limit)
				require.Equal(k, append(append([]string{}, of...), "writer/ann asked"), got)
				got, _ = k.export(auth.AuditQuery{App: "planner", User: "ann"}, anyone, limit)
				require.Equal(k, of, got)
				got, _ = k.export(auth.AuditQuery{App: "planner", Action: "asked"}, anyone, limit)
				require.Equal(k, []string{"planner/ann asked", "planner/bob asked"}, got)
				// What a query says too much of, access takes away again.
				got, _ = k.export(auth.AuditQuery{}, func(o agent.Owner) bool { return o == bob }, limit)
				require.Equal(k, []string{"planner/bob asked"}, got)
			}
			_, last := k.export(auth.AuditQuery{App: "planner", User: "ann"}, anyone, 2)
			k.ask(row, "", "again", need(ann, "write"))
			got, _ := k.export(auth.AuditQuery{App: "planner", User: "ann", After: last}, anyone, 2)
			require.Equal(k, []string{"planner/ann asked"}, got)
			for _, cursor := range []string{"x", "MQ", "YS0x", "?"} {
				_, err := k.s.Audit(k.ctx, auth.AuditQuery{After: cursor}, anyone, 1)
				require.ErrorIs(k, err, auth.ErrCursor, cursor)
			}
		}},
		{"audit/by time", func(k *kit) {
			began := k.clock.now()
			k.waiting(ann, "one", "read")
			k.clock.advance(time.Hour)
			k.waiting(ann, "two", "write")
			for _, c := range []struct {
				q    auth.AuditQuery
				rows int
			}{
				{auth.AuditQuery{Since: began}, 2},
				{auth.AuditQuery{Since: began.Add(time.Second)}, 1},
				{auth.AuditQuery{Until: began.Add(time.Hour)}, 1},
				{auth.AuditQuery{Until: began}, 0},
			} {
				got, _ := k.export(c.q, anyone, 10)
				require.Len(k, got, c.rows, c.q)
			}
		}},
		{"audit/says who acted", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			run := k.ctx
			k.ctx = auth.WithActor(k.ctx, "https://id.example ann")
			state := k.exchanging(request)
			k.ctx = run
			f, err := k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			_, err = k.s.Commit(auth.WithActor(k.ctx, f.Actor), state, grant("read"))
			require.NoError(k, err)
			require.NoError(k, k.s.Used(k.ctx, k.grants(ann)[0], oauth.Use{Session: "s", Agent: "root", Tool: "send"}))
			page, err := k.s.Audit(k.ctx, auth.AuditQuery{}, anyone, 10)
			require.NoError(k, err)
			got := map[string]string{}
			for _, row := range page.Rows {
				got[row.Action] = row.Actor
			}
			require.Equal(k, map[string]string{"asked": "", "opened": "https://id.example ann", "granted": "https://id.example ann", "used": ""}, got)
		}},
	}
}

// Whoever reaches the database past the store adds rows at most.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	for name, reachable := range map[string]func(*testing.T) (string, *sql.DB){
		"sqlite": func(t *testing.T) (string, *sql.DB) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "tarry.db")
			db, err := sql.Open("sqlite", "file:"+path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return path, db
		},
		"postgres": func(t *testing.T) (string, *sql.DB) {
			t.Helper()
			url := schema(t)
			return url, reach(t, url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, db := reachable(t)
			s := open(t, url)
			for range 2 {
				require.NoError(t, s.Used(t.Context(), oauth.Grant{Slot: slot(ann)}, oauth.Use{Agent: "root", Tool: "send"}))
			}
			statements := []string{`UPDATE audit SET action = 'asked'`, `UPDATE audit SET actor = 'eve' WHERE seq = 1`, `DELETE FROM audit`, `DELETE FROM audit WHERE seq = 1`}
			if name == "postgres" {
				statements = append(statements, `TRUNCATE audit`, `TRUNCATE audit, outbox CASCADE`)
			}
			for _, text := range statements {
				_, err := db.ExecContext(t.Context(), text)
				require.ErrorContains(t, err, "append-only", text)
			}
			page, err := s.Audit(t.Context(), auth.AuditQuery{}, anyone, 10)
			require.NoError(t, err)
			require.Len(t, page.Rows, 2)
		})
	}
}

// PostgreSQL hands out numbers before rows appear: a page waits for the rows before those that it has, or its cursor would
// go past them.
func TestAuditWaitsForEarlierRows(t *testing.T) {
	t.Parallel()
	url := schema(t)
	s, db := open(t, url), reach(t, url)
	use := func() { require.NoError(t, s.Used(t.Context(), oauth.Grant{Slot: slot(ann)}, oauth.Use{Tool: "send"})) }
	use()
	slow, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = slow.ExecContext(t.Context(), `INSERT INTO audit (at, app, usr, session, request, action, detail) VALUES (1, 'planner', 'ann', '', '', 'slow', '')`)
	require.NoError(t, err)
	use()

	read := func(ctx context.Context) (int, error) {
		page, err := s.Audit(ctx, auth.AuditQuery{}, anyone, 10)
		return len(page.Rows), err
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = read(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	got := make(chan int)
	go func() {
		n, _ := read(t.Context())
		got <- n
	}()
	use() // nobody waits for the reader
	require.NoError(t, slow.Commit())
	require.GreaterOrEqual(t, <-got, 3)
}
