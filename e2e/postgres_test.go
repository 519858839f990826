package e2e_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"tarry/e2e/invariants"
	"tarry/internal/stack"
	"tarry/store/storetest"
)

// postgresSchema makes an empty schema that goes with the test, and returns its URL and a handle on it.
func postgresSchema(t *testing.T) (string, *sql.DB) {
	t.Helper()
	address := storetest.Schema(t)
	return address, storetest.Reach(t, address)
}

// The main job on PostgreSQL, with two workers and two servers: runs that were started at both wait for one login, which comes while
// no worker runs, after kill -9 of all but one server. Whichever worker is there goes on.
func TestMainJobOnPostgres(t *testing.T) {
	t.Parallel()
	address, db := postgresSchema(t)
	o := chores()
	o.env = append(o.env, "TARRY_DATABASE_URL="+address)
	w := newWorld(t, o)
	require.NoError(t, w.Start(t.Context(), stack.SecondWorker, stack.SecondServer))
	second := apiClient{t: t, base: "http://" + w.Addr(stack.SecondServer), host: w.Addr(stack.Server)}
	var runs []runHandle
	for i := range 4 {
		api := w.api
		if i%2 == 1 {
			api = second
		}
		runs = append(runs, api.start("assistant", fmt.Sprint("Go, ", i)))
	}
	links := map[string]bool{}
	for _, r := range runs {
		links[w.waiting(r)] = true
	}
	require.Len(t, links, 1, "one login for all")
	require.NoFileExists(t, w.Database(), "nothing is stored elsewhere")

	require.NoError(t, w.Kill(stack.Worker, stack.SecondWorker, stack.Server))
	require.True(t, strings.HasPrefix(runs[1].status().State, "waiting_"), "the second server goes on")
	require.NoError(t, w.Start(t.Context(), stack.Server))
	for link := range links {
		w.login(link)
	}
	require.NoError(t, w.Start(t.Context(), stack.SecondWorker))
	for i, r := range runs {
		require.Equal(t, "done", w.finished(r).InvocationStatus, "run %d", i)
		w.checkAnswers(r.events(), fmt.Sprint("run ", i))
	}
	require.Equal(t, 1, w.provider.Counts().Approvals)

	log, err := invariants.Read(t.Context(), db, w.journal())
	require.NoError(t, err)
	require.Len(t, log.Sessions, len(runs))
	require.Empty(t, invariants.Check(log))
	for _, name := range []stack.Name{stack.Worker, stack.Server, stack.SecondWorker, stack.SecondServer} {
		body, err := os.ReadFile(w.LogFile(name))
		require.NoError(t, err)
		require.NotContains(t, string(body), "search_path", "the database's URL is a secret")
	}
}
