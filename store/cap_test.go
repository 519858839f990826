package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
)

// approval is what one call needs a person to approve.
func approval(o agent.Owner, call string) auth.Need {
	return auth.Need{Type: auth.TypeConfirmation, Slot: auth.ConfirmationSlot(o, call, false), Key: "confirm_" + call, Tool: "send", Toolset: "mail"}
}

func capCases() []testCase {
	// asks opens a session with one call that asks, and says whether anybody was asked.
	asks := func(k *kit, o agent.Owner, id string, n func(call string) auth.Need) (session.Session, auth.Asked) {
		row, call := k.session(o, id), "call-"+id+o.App+o.User
		k.calls(row, theRun, "model-"+call, nil, call)
		_, err := k.s.Start(k.ctx, row, call)
		require.NoError(k, err)
		return row, k.ask(row, call, "req-"+call, n(call), "model-"+call)
	}
	return []testCase{
		{"cap/one question too many is not asked", func(k *kit) {
			k.s.LimitRequests(3)
			of := func(o agent.Owner) func(string) auth.Need {
				return func(call string) auth.Need { return approval(o, call) }
			}
			login := func(o agent.Owner) func(string) auth.Need {
				return func(string) auth.Need { return need(o) }
			}
			first, _ := asks(k, ann, "a1", of(ann))
			for _, id := range []string{"l1", "l2", "l3"} {
				_, asked := asks(k, ann, id, login(ann))
				require.False(k, asked.Full, "sessions that wait for one login are one question")
			}
			_, asked := asks(k, ann, "a2", of(ann))
			require.False(k, asked.Full)
			row, asked := asks(k, ann, "a3", of(ann))
			require.Equal(k, auth.Asked{Full: true}, asked)
			require.NotContains(k, k.timeline(row), "event-req-call-a3plannerann", "nothing is stored")
			open, err := k.s.Requests(k.ctx, ann, true, 100)
			require.NoError(k, err)
			require.Len(k, open, 5)

			// The call did not run, and says so: it may be started.
			call, err := k.s.Call(k.ctx, row, "call-a3plannerann")
			require.NoError(k, err)
			require.False(k, call.Started)

			// Others are not touched: other users, other apps, what waits for a result, and a login that is asked for already.
			for _, o := range []agent.Owner{bob, sameName} {
				_, asked := asks(k, o, "a1", of(o))
				require.False(k, asked.Full, o)
			}
			_, asked = asks(k, ann, "l4", login(ann))
			require.False(k, asked.Full)
			waits, call4 := k.session(ann, "r1"), "call-r1"
			k.calls(waits, theRun, "model-r1", nil, call4)
			n := approval(ann, call4)
			n.Type, n.Slot = auth.TypeResult, auth.ResultSlot(ann, call4)
			require.False(k, k.ask(waits, call4, call4, n, "model-r1").Full)

			// One that ends makes room for one.
			_, err = k.s.CloseRequest(k.ctx, first, "req-call-a1plannerann")
			require.NoError(k, err)
			require.False(k, k.ask(row, "call-a3plannerann", "again", approval(ann, "call-a3plannerann"), "model-call-a3plannerann").Full)
			_, asked = asks(k, ann, "a4", of(ann))
			require.True(k, asked.Full)
			k.s.LimitRequests(0)
			_, asked = asks(k, ann, "a5", of(ann))
			require.False(k, asked.Full)
		}},
		{"cap/runs that ask at once", func(k *kit) {
			const most, runs = 5, 40
			second := k.handle()
			k.s.LimitRequests(most)
			second.LimitRequests(most)
			var rows []session.Session
			for i := range runs {
				row := k.session(ann, fmt.Sprint("s", i))
				k.calls(row, theRun, "model-"+row.ID, nil, "call-"+row.ID)
				rows = append(rows, row)
			}
			var group sync.WaitGroup
			var asked, full atomic.Int64
			errs := make(chan error, runs)
			for i, row := range rows {
				group.Go(func() {
					s := k.s
					if i%2 == 0 {
						s = second
					}
					a, r := question(row, "call-"+row.ID, "req-"+row.ID, approval(ann, row.ID), "model-"+row.ID)
					out, err := s.Ask(k.ctx, a, r, render(a))
					switch {
					case err != nil:
						errs <- err
					case out.Full:
						full.Add(1)
					default:
						asked.Add(1)
					}
				})
			}
			group.Wait()
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}
			require.EqualValues(k, most, asked.Load())
			require.EqualValues(k, runs-most, full.Load())
		}},
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		for _, c := range capCases() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newKit(t, fresh(t)))
			})
		}
	}
}
