package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"tarry/e2e/invariants"
	"tarry/internal/demo"
	"tarry/store/storetest"
)

// checkInvariants reads what the world's runs have left and what models were asked, by means of its own: see the package. It
// runs at the end of every world.
func (w *world) checkInvariants() {
	w.t.Helper()
	if _, err := os.Stat(w.Database()); err != nil {
		return // nothing ran, or on PostgreSQL
	}
	db, err := sql.Open("sqlite", "file:"+w.Database()+"?mode=ro&_pragma=busy_timeout(10000)")
	require.NoError(w.t, err)
	defer db.Close()
	log, err := invariants.Read(context.Background(), db, w.journal()) // the test's context has ended
	require.NoError(w.t, err)
	require.Empty(w.t, invariants.Check(log))
}

// checkAnswers: every call has exactly one response, after it (invariant I9), and no answer was stored twice (I6).
func (w *world) checkAnswers(events []event, what string) {
	w.t.Helper()
	calls, answers := map[string]int{}, map[string]int{}
	for _, e := range events {
		for _, p := range e.Content.Parts {
			switch {
			case p.FunctionCall != nil && !strings.HasPrefix(p.FunctionCall.Name, "adk_request_"):
				calls[p.FunctionCall.ID]++
			case p.FunctionResponse != nil && !p.FunctionResponse.WillContinue:
				require.Contains(w.t, calls, p.FunctionResponse.ID, "%s: a response before its call", what)
				answers[p.FunctionResponse.ID]++
			}
		}
	}
	require.Equal(w.t, calls, answers, "%s: calls and responses", what)
	for id, n := range calls {
		require.Equal(w.t, 1, n, "%s: call %s", what, id)
	}
}

// checkKeys: each call reached its server with one idempotency key, its own id, and took effect at most once.
func (w *world) checkKeys(_ string, events []event, what string) {
	w.t.Helper()
	ids := map[string]string{}
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil {
				ids[p.FunctionCall.ID] = p.FunctionCall.Name
			}
		}
	}
	seen := map[string]int{}
	for _, c := range w.mcp.Calls("") {
		if tool, ours := ids[c.IdempotencyKey]; ours {
			require.Equal(w.t, tool, c.Tool, what)
			seen[c.Tool]++
		}
		require.NotEmpty(w.t, c.IdempotencyKey, what)
	}
	require.LessOrEqual(w.t, seen["add_comment"], 1, "%s: a tool that may not run twice did", what)
	effects := map[string]int{}
	for _, e := range w.mcp.Effects() {
		effects[e.IdempotencyKey]++
	}
	for key, n := range effects {
		require.Equal(w.t, 1, n, "%s: effects of call %s", what, key)
	}
}

func (w *world) tryLogin(link string) (*demo.Page, error) {
	return demo.NewBrowser().Login(w.t.Context(), link, "alice", "alice-password")
}

func (w *world) open(link string) (*demo.Page, error) {
	return demo.NewBrowser().Open(w.t.Context(), link)
}

// query reads a column of the store, past the API.
func (w *world) query(text string, args ...any) (out []string) {
	w.t.Helper()
	if w.database != "" {
		return query(w.t, w.database, text, args...)
	}
	return query(w.t, w.Database(), text, args...)
}

func query(tb testing.TB, file, text string, args ...any) (out []string) {
	tb.Helper()
	driver, source := "sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(10000)"
	if strings.Contains(file, "://") {
		driver, source = "pgx", storetest.Plain(file)
		for i := range args {
			text = strings.Replace(text, "?", fmt.Sprint("$", i+1), 1)
		}
	}
	db, err := sql.Open(driver, source)
	require.NoError(tb, err)
	defer db.Close()
	rows, err := db.QueryContext(tb.Context(), text, args...)
	require.NoError(tb, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		require.NoError(tb, rows.Scan(&s))
		out = append(out, s)
	}
	require.NoError(tb, rows.Err())
	return out
}

// untried says whether the request waits for a login that nobody is completing.
func (w *world) untried(request string) bool {
	return slices.Equal(w.query(`SELECT status FROM requests WHERE id = ?`, request), []string{"pending"})
}
