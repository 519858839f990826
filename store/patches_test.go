package store_test

import (
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

func (k *kit) patch(row session.Session, id string, delta map[string]any) {
	k.Helper()
	require.NoError(k, k.s.Patch(k.ctx, row.Owner, row.ID, patchOf(id, delta)))
}

func patchOf(id string, delta map[string]any) session.Event {
	return session.Event{ID: id, InvocationID: "p-" + id, Actions: session.Actions{StateDelta: delta}}
}

func (k *kit) state(row session.Session) map[string]any {
	k.Helper()
	state, err := k.s.State(k.ctx, row.Owner, row.ID)
	require.NoError(k, err)
	return state
}

// view is what a run sees from its heads.
func (k *kit) view(row session.Session, heads ...string) []string {
	k.Helper()
	views := session.NewViews(k.s, 1)
	view, err := views.View(k.ctx, row, heads)
	require.NoError(k, err)
	return ids(view)
}

// State that clients write is one more thing that the next message follows, and nothing that a run sees before.
func patchCases() []testCase {
	return []testCase{
		{"patch/before the first message", func(k *kit) {
			row := k.session(ann, "s")
			k.patch(row, "p-1", map[string]any{"a": 1.0, "b": 1.0, "temp:x": 1.0, "app:x": 1.0})
			k.patch(row, "p-2", map[string]any{"b": nil, "user:c": 2.0})
			require.Equal(k, map[string]any{"a": 1.0, "user:c": 2.0}, k.state(row))
			require.Equal(k, []string{"p-1", "p-2"}, k.timeline(row))
			require.Equal(k, map[string]any{"a": 1.0, "b": nil}, k.row(ann, "s").Patched)
			k.post(row, "in-1", "i-1", "hi")
			r, _ := k.take(row, theRun, "u-1")
			require.Equal(k, []string{"p-2"}, r.Parents)
			require.Equal(k, []string{"p-1", "p-2", "u-1"}, k.view(row, "u-1"))
			require.Equal(k, []string{"u-1"}, k.tips(row, theRun))
		}},
		{"patch/beside a run", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, theRun, "u-1")
			k.append(row, theRun, said("m-1", session.KindModel, theAgent, "", "u-1"))
			for i := range 5 {
				k.patch(row, fmt.Sprint("p-", i), map[string]any{"n": float64(i)})
			}
			k.append(row, theRun, said("m-2", session.KindModel, theAgent, "", "m-1"))
			require.Equal(k, []string{"u-1", "m-1", "m-2"}, k.view(row, "m-2"), "the run's view is what it was")
			require.EqualValues(k, 4, k.state(row)["n"])
			tips := k.tips(row, theRun)
			require.ElementsMatch(k, []string{"m-2", "p-4"}, tips, "one more head, however many patches")
			k.post(row, "in-2", "i-2", "more")
			r, _ := k.take(row, theRun, "u-2", "m-2") // the run has not heard of the patch
			require.Equal(k, []string{"m-2", "p-4"}, r.Parents)
			require.Equal(k, []string{"u-1", "m-1", "p-0", "p-1", "p-2", "p-3", "p-4", "m-2", "u-2"}, k.view(row, "u-2"))
			k.post(row, "in-3", "i-3", "and more")
			r, _ = k.take(row, theRun, "u-3", "u-2")
			require.Equal(k, []string{"u-2"}, r.Parents, "once is enough")
		}},
		{"patch/what comes later wins", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, theRun, "u-1")
			k.patch(row, "p-1", map[string]any{"a": "client", "b": "client"})
			e := said("m-1", session.KindModel, theAgent, "", "u-1")
			e.Actions.StateDelta = map[string]any{"a": "agent"}
			k.append(row, theRun, e)
			require.Equal(k, map[string]any{"a": "agent", "b": "client"}, k.state(row))
		}},
		{"patch/a reset leaves it where it is", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, "run-a", "u-1")
			k.append(row, "run-a", said("m-1", session.KindModel, theAgent, "", "u-1"))
			k.patch(row, "p-1", map[string]any{"a": 1.0})
			k.post(row, "in-2", "i-2", "more")
			k.take(row, "run-a", "u-2", "m-1")
			k.append(row, "run-a", said("m-2", session.KindModel, theAgent, "", "u-2"))
			k.patch(row, "p-2", map[string]any{"b": 2.0})

			// The run begins again before its first answer: what it said then is gone, what clients wrote is not.
			k.append(row, "run-b", said("m-9", session.KindModel, theAgent, "", "u-1"))
			require.Equal(k, []string{"u-1", "p-1", "p-2", "m-9"}, k.timeline(row))
			require.Equal(k, map[string]any{"a": 1.0, "b": 2.0}, k.state(row))
			r, inbox, err := k.s.Retake(k.ctx, row, "run-b", "u-9", []string{"m-9"}, []string{"in-2"})
			require.NoError(k, err)
			require.Equal(k, "in-2", inbox)
			require.Equal(k, []string{"m-9", "p-2"}, r.Parents)
		}},
		{"patch/a reset that takes a message again", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, "run-a", "u-1")
			k.append(row, "run-a", said("m-1", session.KindModel, theAgent, "", "u-1"))
			k.patch(row, "p-1", map[string]any{"a": 1.0})
			k.post(row, "in-2", "i-2", "more")
			k.take(row, "run-a", "u-2", "m-1")
			r, _, err := k.s.Retake(k.ctx, row, "run-b", "u-9", []string{"m-1"}, []string{"in-1", "in-2"})
			require.NoError(k, err)
			require.Equal(k, []string{"m-1", "p-1"}, r.Parents, "the patch had been followed by what is left behind")
			require.Equal(k, []string{"u-1", "m-1", "p-1", "u-9"}, k.timeline(row))
		}},
		{"patch/a session that is over", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, theRun, "u-1")
			_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: "i-1", Status: "done", Closed: true, Append: session.Append{Owner: row.Owner, Session: row.ID}})
			require.NoError(k, err)
			before := k.row(ann, "s")
			k.patch(row, "p-1", map[string]any{"a": 1.0})
			after := k.row(ann, "s")
			require.Equal(k, before.Status, after.Status)
			require.True(k, after.Closed)
			require.Equal(k, map[string]any{"a": 1.0}, k.state(row))
		}},
		{"patch/somebody else's, and too much", func(k *kit) {
			row := k.session(ann, "s")
			require.ErrorIs(k, k.s.Patch(k.ctx, bob, "s", patchOf("p-1", map[string]any{"a": 1.0})), session.ErrNotFound)
			require.ErrorIs(k, k.s.Patch(k.ctx, sameName, "s", patchOf("p-1", map[string]any{"a": 1.0})), session.ErrNotFound)
			k.patch(row, "p-2", map[string]any{"a": strings.Repeat("x", session.MaxPatched-100)})
			require.ErrorIs(k, k.s.Patch(k.ctx, ann, "s", patchOf("p-3", map[string]any{"b": strings.Repeat("x", 200)})), session.ErrLarge)
			require.Equal(k, []string{"p-2"}, k.timeline(row), "all or nothing")
			k.patch(row, "p-4", map[string]any{"a": "short"})
		}},
		{"patch/many at once, beside a run", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			k.take(row, theRun, "u-1")
			var wait sync.WaitGroup
			errs := make(chan error, 100)
			for i := range 8 {
				s := k.handle()
				wait.Go(func() {
					for n := range 5 {
						errs <- s.Patch(k.ctx, ann, "s", patchOf(fmt.Sprintf("p-%d-%d", i, n), map[string]any{fmt.Sprint("k", i): float64(n)}))
					}
				})
			}
			last := "u-1"
			for i := range 10 {
				id := fmt.Sprint("m-", i)
				k.append(row, theRun, said(id, session.KindModel, theAgent, "", last))
				last = id
			}
			wait.Wait()
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}
			require.Len(k, k.view(row, last), 11)
			require.Len(k, k.timeline(row), 51)
			require.Len(k, k.tips(row, theRun), 2)
			for i := range 8 {
				require.EqualValues(k, 4, k.state(row)[fmt.Sprint("k", i)])
			}
		}},
	}
}
