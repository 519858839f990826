package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/notify"
	"tarry/session"
	"tarry/store"
)

const month = 30 * 24 * time.Hour

// purgeable are the tables that [store.Store.Purge] may touch.
func purgeable() []string {
	return []string{"outbox", "flows", "refused_codes", "deliveries", "people_sessions", "spent_signins", "parked_callbacks", "slots", "askers"}
}

// kept are the tables that it must leave alone.
func kept() []string {
	return []string{"sessions", "runs", "events", "inbox", "invocations", "calls", "requests", "grants", "versions", "audit", "registrations", "callbacks", "artifacts", "memories"}
}

func (k *kit) rows(tables []string) map[string]int {
	k.Helper()
	out := map[string]int{}
	for _, table := range tables {
		n, err := k.s.Rows(k.ctx, table)
		require.NoError(k, err)
		out[table] = n
	}
	return out
}

// ended leaves a row of every kind that has ended, or will have ended in a moment, and what nobody may touch beside it.
func (k *kit) ended(name string) {
	k.Helper()
	row, request := k.waiting(ann, name, name)
	k.save(row, "a", genai.NewPartFromText("x"))
	k.append(row, theRun, said("said-"+name, session.KindUser, agent.UserAuthor, "hello", "model-call-"+name+row.Owner.App+row.Owner.User))
	k.remember(row)
	k.post(row, "in-"+name, "inv-"+name, "hello")
	refused := k.begun(request)
	require.NoError(k, k.s.Refuse(k.ctx, refused, "cookie", "code-"+name, 32))
	k.login(request, name)
	_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: inv, Status: "done", Closed: true, Append: session.Append{Owner: row.Owner, Session: row.ID}}) // the run has acted
	require.NoError(k, err)
	require.NoError(k, k.s.StartPersonSession(k.ctx, "person-"+name, auth.Person{Issuer: "i", Subject: name}, time.Minute, ""))
	require.NoError(k, k.s.SpendSignIn(k.ctx, "state-"+name, time.Minute))
	require.NoError(k, k.s.ParkCallback(k.ctx, "nonce-"+name, "shop", "state-"+name, []byte("sealed"), time.Minute))
	for {
		due, err := k.s.DueWebhooks(k.ctx, "hook", 100, time.Minute)
		require.NoError(k, err)
		if len(due) == 0 {
			return
		}
		for _, d := range due {
			require.NoError(k, k.s.EndWebhook(k.ctx, d, notify.Outcome{Status: notify.Delivered, Code: 200}))
		}
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, fresh(t))
			hook := []notify.Endpoint{{Name: "hook", URL: "https://hook.example", Apps: []string{"*"}, Types: []string{"*"}}}
			require.NoError(k, k.s.ListenWebhooks(k.ctx, hook))
			k.ended("old")
			left, of := k.waiting(agent.Owner{App: "planner", User: "eve"}, "left")
			_, err := k.s.CloseRequest(k.ctx, left, of)
			require.NoError(k, err)
			k.clock.advance(month)
			require.NoError(k, k.s.ListenWebhooks(k.ctx, hook))
			k.ended("recent")
			open, waits := k.waiting(bob, "open") // and what is open
			live := k.begun(waits)
			_, other := k.waiting(sameName, "other")
			exchanging := k.exchanging(other)
			k.clock.advance(time.Hour) // what was old is older than a month
			before, stays := k.rows(purgeable()), k.rows(kept())
			for _, table := range purgeable() {
				require.NotZero(k, before[table], table)
			}
			n, err := k.s.Purge(k.ctx, month)
			require.NoError(k, err)
			require.NotZero(k, n)
			after := k.rows(purgeable())
			for _, table := range purgeable() {
				require.Less(k, after[table], before[table], table)
			}
			require.Equal(k, stays, k.rows(kept()))
			require.NotZero(k, after["outbox"], "recent and open messages stay")
			require.Equal(k, 1, after["refused_codes"], "of the recent login")
			for _, state := range []string{live, exchanging} {
				_, err := k.s.Flow(k.ctx, state)
				require.NoError(k, err)
			}
			n, err = k.s.Purge(k.ctx, month)
			require.NoError(k, err)
			require.Zero(k, n)

			// What is open stays at any age, but for a login that nobody has come back from: its link begins another.
			k.clock.advance(10 * month)
			outstanding, err := k.s.Outstanding(k.ctx)
			require.NoError(k, err)
			_, err = k.s.Purge(k.ctx, month)
			require.NoError(k, err)
			unsent, err := k.s.Outstanding(k.ctx)
			require.NoError(k, err)
			require.Equal(k, outstanding, unsent)
			require.Equal(k, outstanding, k.rows([]string{"outbox"})["outbox"])
			_, err = k.s.Flow(k.ctx, exchanging)
			require.NoError(k, err)
			require.Equal(k, auth.StatusPending, k.request(waits).Status)
			k.begun(waits)
			_, err = k.s.CloseRequest(k.ctx, open, waits) // whose lock had been purged
			require.NoError(k, err)
			require.Equal(k, stays["audit"]+2, k.rows([]string{"audit"})["audit"])
		})
	}
}

// Servers purge at once while others write.
func TestPurgeAtOnce(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, fresh(t))
			const rows = 1200
			for i := range rows {
				require.NoError(k, k.s.ParkCallback(k.ctx, fmt.Sprint("n", i), "shop", fmt.Sprint("s", i), []byte("x"), 24*time.Hour))
			}
			k.clock.advance(25 * time.Hour)
			var group sync.WaitGroup
			var total atomic.Int64
			errs := make(chan error, 10)
			for _, s := range []*store.Store{k.s, k.handle(), k.handle()} {
				group.Go(func() {
					n, err := s.Purge(context.WithoutCancel(k.ctx), month)
					total.Add(int64(n))
					if err != nil {
						errs <- err
					}
				})
			}
			group.Go(func() {
				for i := range 20 {
					if err := k.s.SpendSignIn(context.WithoutCancel(k.ctx), fmt.Sprint("spent", i), time.Hour); err != nil {
						errs <- err
					}
				}
			})
			group.Wait()
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}
			require.EqualValues(k, rows, total.Load())
			require.Equal(k, 20, k.rows([]string{"spent_signins"})["spent_signins"])
		})
	}
}
