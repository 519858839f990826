package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// postgresDatabase makes a database that goes with the test and loses nothing in a crash.
func postgresDatabase(t *testing.T) (string, *sql.DB) {
	t.Helper()
	base := os.Getenv("TARRY_TEST_DATABASE_URL")
	if base == "" {
		t.Skip("TARRY_TEST_DATABASE_URL is not set")
	}
	u, err := url.Parse(base)
	require.NoError(t, err)
	admin, err := sql.Open("pgx", base)
	require.NoError(t, err)
	name := fmt.Sprintf("tarry_soak_%d", os.Getpid())
	for _, statement := range []string{`CREATE DATABASE ` + name, `ALTER DATABASE ` + name + ` SET synchronous_commit = on`} {
		_, err = admin.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	u.Path = "/" + name
	db, err := sql.Open("pgx", u.String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		_, err := admin.ExecContext(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`) // the test's context has ended
		require.NoError(t, err)
		require.NoError(t, admin.Close())
	})
	return u.String(), db
}

// Two workers, two servers, Temporal and PostgreSQL, one after the other or at once, are killed again and again at points and moments
// that a seed chooses, while people start runs, log in, approve, answer, refuse and give up. TARRY_SOAK_KILLS sets how many kills,
// TARRY_SEED which. At the end every run has ended, or waits for what is open; and all that must hold, holds.
func TestSoakOnPostgres(t *testing.T) { //nolint:paralleltest // it wants the machine for itself
	kills, seed := number(t, "TARRY_SOAK_KILLS", 15), uint64(number(t, "TARRY_SEED", 1)) //nolint:gosec // any number is a seed
	address, db := postgresDatabase(t)
	proxy := newBalancer(t)
	proxy.hidden.Store(true)
	proxy.to(anyServer)
	public := "http://" + proxy.Addr().String()
	provider, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{AccessTokenTTL: 30 * time.Second}})
	require.NoError(t, err)
	require.NoError(t, provider.Start(""))
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	o := soakOptions(t, newFreeServer(t).url, soakKeys(t).URL())
	o.provider = provider
	o.env = append(o.env, "TARRY_DATABASE_URL="+address, "TARRY_PUBLIC_URL="+public, "TARRY_CONTINUE_AFTER=60", "TARRY_LOG_LEVEL=info")
	w := newWorld(t, o)
	proxy.servers = []string{w.Addr(stack.Server), w.Addr(stack.SecondServer)}
	require.NoError(t, w.Start(t.Context(), stack.SecondWorker, stack.SecondServer))
	w.api.base = public

	c := &crowd{world: w, db: db, base: public, open: number(t, "TARRY_SOAK_RUNS", 24)}
	starting, stopStarting := context.WithCancel(t.Context())
	answering, stopAnswering := context.WithCancel(t.Context())
	defer func() { stopStarting(); stopAnswering(); c.done.Wait() }()
	c.done.Go(func() { c.begin(starting, seed) })
	c.answer(answering, seed, 6)

	k := newKiller(w, db, seed)
	began := time.Now()
	for i := range kills {
		k.strike(t.Context(), i)
		select {
		case err := <-w.Failed():
			require.NoError(t, err, "a process ended by itself after kill %d of seed %d", i, seed)
		default:
		}
	}
	took := time.Since(began)
	t.Logf("seed %d: %d kills in %s, %.0f a minute: %s", seed, kills, took.Round(time.Second), float64(kills)/took.Minutes(), k.summary())
	stopStarting()
	began = time.Now()
	w.eventually("not every run ends", func() bool { return c.count(t.Context(), `SELECT COUNT(*) FROM invocations WHERE ended = 0`) == 0 })
	t.Logf("%d messages have ended, the last %s after the last kill", c.count(t.Context(), `SELECT COUNT(*) FROM invocations`), time.Since(began).Round(time.Second))
	stopAnswering()
	c.done.Wait()

	absent := c.absent()
	require.NoError(t, w.Kill(soakProcesses()...))
	require.NoError(t, w.Start(t.Context(), soakProcesses()...))
	for _, r := range absent {
		w.waiting(r)
	}
	w.eventually("not every message is delivered", func() bool { return c.count(t.Context(), `SELECT COUNT(*) FROM outbox WHERE done = 0`) == 0 })
	checkSoak(c)
}
