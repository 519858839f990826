package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/e2e/invariants"
	"tarry/internal/stack"
)

// What docker-compose.yml describes, as processes. All start at once on an empty database; runs start at both servers; a worker, a
// server and Temporal are killed while they wait; a person signs in, begins the login at one server and comes back to the other; that one
// alone says how it ended.
func TestComposeOnPostgres(t *testing.T) {
	t.Parallel()
	address, db := postgresSchema(t)
	w := newTopology(t, address)
	all := []stack.Name{stack.Worker, stack.Server, stack.SecondWorker, stack.SecondServer}
	require.NoError(t, w.StartTogether(t.Context(), all...), "they make the tables and the keyset once, whoever is first")

	require.Equal(t, http.StatusUnauthorized, w.get(w.public+"/apps/planner/users/me/sessions"), "nobody has signed in")
	var runs []runHandle
	for i := range 2 {
		w.proxy.to(func(string) int { return i })
		runs = append(runs, w.api.startAs("me", "planner", map[string]string{"task": "Plan the next release."}))
	}
	require.Equal(t, []int64{2, 1}, w.proxy.counts())
	link := w.waiting(runs[0])
	require.Equal(t, link, w.waiting(runs[1]), "one login for both")
	require.True(t, strings.HasPrefix(link, w.public+"/connect?"), link)

	// T38: what waits can be told without Temporal and without a worker, as each server knows it.
	require.NoError(t, w.Kill(stack.Temporal, stack.Worker, stack.SecondWorker, stack.SecondServer))
	require.True(t, strings.HasPrefix(runs[1].status().State, "waiting_"), "the other server goes on")
	var pending struct{ Logins []struct{ Link string } }
	require.Equal(t, http.StatusOK, w.api.call("GET", "/logins?user=me", nil, &pending))
	require.Len(t, pending.Logins, len(runs))
	for _, login := range pending.Logins {
		require.Equal(t, link, login.Link)
	}
	require.NoError(t, w.Start(t.Context(), stack.Temporal, stack.SecondWorker, stack.SecondServer))

	// Callbacks, of the sign-in and of the login, come to the server that did not begin them.
	w.proxy.to(func(path string) int {
		if strings.Contains(path, "callback") {
			return 1
		}
		return 0
	})
	w.proxy.counts()
	browser := w.browser()
	page, err := browser.Login(t.Context(), w.public+"/signin", "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, page.Status, page.Text)
	require.Contains(t, page.Text, "Alice")
	page, err = browser.Login(t.Context(), link, "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, "Connected", page.Title, page.Text)
	at := w.proxy.counts()
	require.Positive(t, at[0])
	require.GreaterOrEqual(t, at[1], int64(2), "both callbacks")

	require.NoError(t, w.Kill(stack.Server))
	for i, r := range runs {
		s := w.finished(r)
		require.Equal(t, "done", s.InvocationStatus, "run %d", i)
		require.Contains(t, s.Answer, "Release plan", "run %d", i)
		w.checkAnswers(r.events(), "run")
	}
	third := w.api.startAs("me", "planner", map[string]string{"task": "Plan the next release."})
	require.Equal(t, "done", w.finished(third).InvocationStatus)
	require.Empty(t, asks(third.events()), "the grant serves whoever comes later")

	log, err := invariants.Read(t.Context(), db, w.journal())
	require.NoError(t, err)
	require.Len(t, log.Sessions, len(runs)+1)
	require.Empty(t, invariants.Check(log))
	require.NoFileExists(t, w.Database(), "nothing is stored elsewhere")
	w.notLogged(all...)
}

// notLogged looks for secrets of the deployment in logs.
func (w *topology) notLogged(names ...stack.Name) {
	w.t.Helper()
	for _, secret := range []string{"oidc_client_secret", "tarry_db_password"} {
		value, err := os.ReadFile(filepath.Join(w.secrets, secret))
		require.NoError(w.t, err)
		for _, name := range names {
			body, err := os.ReadFile(w.LogFile(name))
			require.NoError(w.t, err)
			require.NotContains(w.t, string(body), string(value), secret)
		}
	}
}
