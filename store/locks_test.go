package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
	"tarry/store"
)

// lockCases are races between handles, as between processes, which only a database with several writers can lose.
func lockCases() []testCase {
	return []testCase{
		{"locks/appends to one session follow each other", func(k *kit) {
			row := k.session(ann, "s")
			handles := []interface {
				Append(ctx ctxT, a session.Append) ([]*session.Record, error)
			}{k.s, k.handle(), k.handle()}
			const each = 15
			errs := make(chan error, len(handles)*each)
			var wait sync.WaitGroup
			for h, s := range handles {
				wait.Go(func() {
					for i := range each {
						e := said(fmt.Sprintf("e-%d-%d", h, i), session.KindModel, theAgent, "")
						_, err := s.Append(k.ctx, session.Append{Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{e}})
						errs <- err
					}
				})
			}
			wait.Wait()
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}
			require.Len(k, k.tips(row, theRun), len(handles)*each, "no tip is lost")
		}},
		{"locks/a message is claimed by one", func(k *kit) {
			row := k.session(ann, "s")
			const messages = 60
			for i := range messages {
				k.post(row, fmt.Sprint("m", i), fmt.Sprint("i", i), "hello")
			}
			var mu sync.Mutex
			claimed := map[string]int{}
			var failed error
			var wait sync.WaitGroup
			for range 3 {
				s := k.handle()
				wait.Go(func() {
					for {
						due, err := s.Due(k.ctx, 5, time.Hour)
						mu.Lock()
						for _, m := range due {
							claimed[m.ID]++
						}
						if err != nil {
							failed = err
						}
						mu.Unlock()
						if err != nil || len(due) == 0 {
							return
						}
						if len(due) > 5 {
							mu.Lock()
							failed = fmt.Errorf("%d claimed, at most 5 were asked for", len(due))
							mu.Unlock()
						}
					}
				})
			}
			wait.Wait()
			require.NoError(k, failed)
			require.Len(k, claimed, messages)
			for id, n := range claimed {
				require.Equal(k, 1, n, id)
			}
		}},
		{"locks/a refresh is leased to one, and a login beside it does not block", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			second := k.handle()
			for i := range 15 {
				g := k.grants(ann)[0]
				other, asked := k.waiting(bob, fmt.Sprint("b", i), fmt.Sprint("scope", i))
				_ = other
				state := k.exchanging(asked)
				var wait sync.WaitGroup
				oks, errs := make([]bool, 2), make([]error, 4)
				for h, s := range []interface {
					Lease(ctx ctxT, owner agent.Owner, id string, version int64, lease time.Duration) (oauth.Grant, bool, error)
				}{k.s, second} {
					wait.Go(func() { _, oks[h], errs[h] = s.Lease(k.ctx, ann, g.ID, g.Version, time.Minute) })
				}
				wait.Go(func() { _, errs[2] = second.Commit(k.ctx, state, grant(fmt.Sprint("scope", i))) })
				wait.Wait()
				wait.Go(func() { _, errs[3] = k.s.SaveRefresh(k.ctx, g.Version, g) })
				wait.Go(func() { _, errs[2] = second.Keep(k.ctx, g) })
				wait.Wait()
				for _, err := range errs {
					require.NoError(k, err)
				}
				require.NotEqual(k, oks[0], oks[1], "one of two gets the lease")
			}
		}},
		// What a model can put into the name of a tool, and PostgreSQL does not take.
		{"locks/text that is no text", func(k *kit) {
			row := k.session(ann, "s")
			e := said("m", session.KindModel, theAgent, "a\x00b\xff")
			e.InvocationID = inv
			_, err := k.s.Append(k.ctx, session.Append{
				Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{e},
				Calls: []session.Call{{ID: "c", Invocation: inv, Event: "m", Agent: theAgent, Toolset: "mail", Name: "se\x00nd\xff", Args: []byte(`{"to":"a\u0000b"}`)}},
			})
			require.NoError(k, err)
			call, err := k.s.Call(k.ctx, row, "c")
			require.NoError(k, err)
			require.Equal(k, "se\uFFFDnd\uFFFD", call.Name)
			require.JSONEq(k, `{"to":"a\u0000b"}`, string(call.Args))
			_, err = k.s.Session(k.ctx, ann, "s\x00")
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
	}
}

func TestPostgresProcesses(t *testing.T) {
	t.Parallel()
	t.Run("open an empty schema together", func(t *testing.T) {
		t.Parallel()
		openTogether(t, schema(t))
	})
	t.Run("are killed while they write", func(t *testing.T) {
		t.Parallel()
		killWriters(t, schema(t))
	})
}

// A request that moves to another slot while somebody waits for the old slot's lock is read again under the new one's.
func TestPostgresRequestMovesUnderTheLock(t *testing.T) {
	t.Parallel()
	url := schema(t)
	k := newKit(t, func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, url) })
	row, request := k.waiting(ann, "s", "read")
	db := reach(t, url)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	moved := k.request(request).Need
	moved.Slot.Issuer = "https://other.example"
	for _, text := range []string{
		`UPDATE slots SET touched = 1`,
		`INSERT INTO slots (id, body, touched) VALUES ('` + moved.Slot.ID() + `', '{}', 0)`,
		`UPDATE requests SET slot = '` + moved.Slot.ID() + `', need = replace(need, '"issuer":"https://id.example","resource"', '"issuer":"https://other.example","resource"')`,
	} {
		_, err := tx.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
	done := make(chan error, 1)
	go func() {
		status, err := k.s.CloseRequest(k.ctx, row, request)
		if err == nil && status != auth.StatusExpired {
			err = fmt.Errorf("is %s", status)
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return blocked(t.Context(), db) }, time.Minute, time.Millisecond)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
	require.Equal(t, "https://other.example", k.request(request).Need.Slot.Issuer)
	var touched int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM slots WHERE id = $1 AND touched > 0`, moved.Slot.ID()).Scan(&touched))
	require.Equal(t, 1, touched, "the slot that it moved to was locked too")
}

// A login that lands between "there is no token" and "there is an open request" has to wait for the slot, or it would wake nobody.
func TestPostgresSlotLock(t *testing.T) {
	t.Parallel()
	url := schema(t)
	k := newKit(t, func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, url) })
	_, request := k.waiting(ann, "first", "read")
	state := k.exchanging(request)
	row := k.session(ann, "second")
	k.calls(row, theRun, "m", nil, "call")
	db, second := reach(t, url), k.handle()
	committed := make(chan error, 1)
	a, r := question(row, "call", "late", need(ann, "read"), "m")
	asked, err := k.s.Ask(k.ctx, a, r, func(auth.Request) (session.NewEvent, error) {
		go func() {
			_, err := second.Commit(k.ctx, state, grant("read"))
			committed <- err
		}()
		require.Eventually(t, func() bool { return len(committed) > 0 || blocked(k.ctx, db) }, time.Minute, time.Millisecond)
		return a.Events[0], nil
	})
	require.NoError(t, err)
	require.False(t, asked.Granted)
	require.NoError(t, <-committed)
	require.Equal(t, auth.StatusGranted, k.request("late").Status, "it waits for a login that has been")
}

// Two transactions that each hold what the other wants: the database ends one, which runs again.
func TestPostgresDeadlock(t *testing.T) {
	t.Parallel()
	url := schema(t)
	k := newKit(t, func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, url) })
	_, request := k.waiting(ann, "s", "read")
	k.login(request, "read")
	g := k.grants(ann)[0]
	db := reach(t, url)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	// Later than the store's own lock is noticed, so that the store's transaction is the one that ends.
	for _, text := range []string{`SET LOCAL deadlock_timeout = '1min'`, `UPDATE versions SET version = version`} {
		_, err := tx.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
	type result struct {
		saved bool
		err   error
	}
	done := make(chan result, 1)
	go func() {
		saved, err := k.s.SaveRefresh(k.ctx, g.Version, g)
		done <- result{saved, err}
	}()
	require.Eventually(t, func() bool { return blocked(t.Context(), db) }, time.Minute, time.Millisecond)
	_, err = tx.ExecContext(t.Context(), `UPDATE slots SET touched = touched`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	out := <-done
	require.NoError(t, out.err)
	require.True(t, out.saved)
	require.Equal(t, g.Version+1, k.grants(ann)[0].Version)
}
