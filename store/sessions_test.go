package store_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

func sessionCases() []testCase {
	return []testCase{
		{"session/create and read", func(k *kit) {
			n := session.Session{Owner: ann, ID: "s", WorkflowID: workflowID(ann, "s"), Initial: map[string]any{"n": 1.0}}
			require.NoError(k, k.s.Create(k.ctx, n))
			row := k.row(ann, "s")
			n.Created, n.Updated = k.clock.now(), k.clock.now()
			require.Equal(k, n, row)
			found, err := k.s.ByWorkflow(k.ctx, n.WorkflowID)
			require.NoError(k, err)
			require.Equal(k, row, found)
			_, err = k.s.ByWorkflow(k.ctx, "other")
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"session/a reset takes a message again, and its invocation goes on", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "in-1", "i-1", "hi")
			r, _ := k.take(row, "run-a", "u-1")
			again := func(run, event string, heads []string, announced ...string) (*session.Record, string) {
				r, inbox, err := k.s.Retake(k.ctx, row, run, event, heads, announced)
				require.NoError(k, err)
				return r, inbox
			}
			k.clock.advance(time.Second)
			_, err := k.s.Finish(k.ctx, row, session.Ending{Run: "run-a", Invocation: "i-1", Status: "done", Closed: true, Append: session.Append{Owner: row.Owner, Session: row.ID}})
			require.NoError(k, err)
			none, _ := again("run-a", "u-2", []string{"u-1"}, "in-1")
			require.Nil(k, none, "it is in the view of that run")

			k.clock.advance(time.Second)
			none, _ = again("run-b", "u-3", nil, "in-9")
			require.Nil(k, none, "not announced")
			second, inbox := again("run-b", "u-4", nil, "in-1")
			require.Equal(k, "in-1", inbox)
			require.Equal(k, r.Parents, second.Parents)
			require.Equal(k, "i-1", second.InvocationID)
			require.Equal(k, []string{"u-4"}, k.timeline(row))
			now := k.row(ann, "s")
			require.False(k, now.Closed)
			require.Equal(k, "running", now.Status)
			i, err := k.s.Invocation(k.ctx, ann, "i-1")
			require.NoError(k, err)
			require.Equal(k, "running", i.Status)
			require.Zero(k, i.Ended)
			repeat, _ := again("run-b", "u-4", nil, "in-1")
			require.Equal(k, second.Seq, repeat.Seq)
			late, _ := again("run-a", "u-5", nil, "in-1")
			require.Nil(k, late, "a run that was replaced takes nothing")
		}},
		{"session/calls that a reset left behind are not open", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, "run-a", "m-1", nil, "c-1")
			k.calls(row, "run-b", "m-2", nil, "c-2")
			open, err := k.s.Open(k.ctx, row, inv, nil)
			require.NoError(k, err)
			require.Len(k, open, 1)
			require.Equal(k, "c-2", open[0].ID)
			open, err = k.s.Open(k.ctx, row, inv, []string{"m-1"})
			require.NoError(k, err)
			require.Len(k, open, 2)
		}},
		{"session/a taken id", func(k *kit) {
			k.session(ann, "s")
			require.ErrorIs(k, k.s.Create(k.ctx, session.Session{Owner: ann, ID: "s", WorkflowID: "other"}), session.ErrExists)
			k.session(bob, "s")
			k.session(sameName, "s")
		}},
		{"session/one of many creators wins", func(k *kit) {
			errs := make([]error, 8)
			var wait sync.WaitGroup
			for i := range errs {
				wait.Go(func() {
					errs[i] = k.s.Create(k.ctx, session.Session{Owner: ann, ID: "s", WorkflowID: workflowID(ann, "s")})
				})
			}
			wait.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
					continue
				}
				require.ErrorIs(k, err, session.ErrExists)
			}
			require.Equal(k, 1, won)
		}},
		{"session/an owner who is nobody", func(k *kit) {
			for _, o := range []agent.Owner{{}, {App: "planner"}, {User: "ann"}} {
				require.ErrorIs(k, k.s.Create(k.ctx, session.Session{Owner: o, ID: "s", WorkflowID: "w"}), agent.ErrInvalidOwner)
			}
		}},
		{"session/owners do not see each other's", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", inv, "hello")
			for _, o := range []agent.Owner{bob, sameName} {
				_, err := k.s.Session(k.ctx, o, "s")
				require.ErrorIs(k, err, session.ErrNotFound)
				_, err = k.s.State(k.ctx, o, "s")
				require.ErrorIs(k, err, session.ErrNotFound)
				_, err = k.s.Invocation(k.ctx, o, inv)
				require.ErrorIs(k, err, session.ErrNotFound)
				require.ErrorIs(k, k.s.Delete(k.ctx, o, "s"), session.ErrNotFound)
				require.ErrorIs(k, k.s.Post(k.ctx, o, "s", "hash", "chat", message("m2", "e-2", "hello")), session.ErrNotFound)
			}
			k.row(ann, "s")
		}},
		{"session/list, newest first", func(k *kit) {
			for i := range 5 {
				k.session(ann, fmt.Sprint("s", i))
			}
			k.session(bob, "other")
			found, err := k.s.Sessions(k.ctx, ann, 3)
			require.NoError(k, err)
			var got []string
			for _, s := range found {
				got = append(got, s.ID)
			}
			require.Equal(k, []string{"s4", "s3", "s2"}, got)
			none, err := k.s.Sessions(k.ctx, sameName, 3)
			require.NoError(k, err)
			require.NotNil(k, none, "an empty list is [] in JSON")
		}},
		{"session/initial state has no app scope, and shares what is the user's", func(k *kit) {
			require.NoError(k, k.s.Create(k.ctx, session.Session{
				Owner: ann, ID: "s", WorkflowID: "w", Initial: map[string]any{"app:limit": 9, "user:lang": "de", "temp:x": 1, "plan": "p"},
			}))
			state, err := k.s.State(k.ctx, ann, "s")
			require.NoError(k, err)
			require.Equal(k, map[string]any{"user:lang": "de", "plan": "p"}, state)
			k.session(ann, "t")
			state, err = k.s.State(k.ctx, ann, "t")
			require.NoError(k, err)
			require.Equal(k, map[string]any{"user:lang": "de"}, state)
		}},
		{"session/delete leaves grants and audit, and no login behind", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.post(row, "m1", inv, "hello")
			other, otherRequest := k.waiting(bob, "s", "read")
			k.login(request, "read")
			k.clock.advance(1)
			k.calls(row, theRun, "m2", nil, "c2")
			asked := k.ask(row, "c2", "req-2", func() auth.Need { n := need(ann, "write"); return n }(), "m2")
			state := k.exchanging(asked.Request.ID)
			k.exchanging(otherRequest)

			require.NoError(k, k.s.Delete(k.ctx, ann, "s"))
			_, err := k.s.Session(k.ctx, ann, "s")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.Request(k.ctx, request, anyone)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			require.Len(k, k.grants(ann), 1)
			require.Contains(k, k.audits(ann), "granted")
			require.Contains(k, k.audits(ann), "cancelled", "what was asked and open")
			k.clock.advance(1e12)
			interrupted, err := k.s.Interrupted(k.ctx, 10)
			require.NoError(k, err)
			require.Len(k, interrupted, 1, "the flow of %s is gone, the other's is there", state)
			require.Equal(k, bob, interrupted[0].Owner)
			require.NotEmpty(k, k.timeline(other))

			again := k.session(ann, "s")
			require.Empty(k, k.timeline(again))
		}},
		{"session/statuses are not moved by a run that was replaced", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", inv, "hello")
			k.take(row, "old", "u")
			require.NoError(k, k.s.SetStatus(k.ctx, row, "new", "waiting_credential"))
			k.calls(row, "new", "m", []string{"u"}, "c")
			k.ask(row, "c", "req", need(ann), "m")
			_, err := k.s.Finish(k.ctx, row, session.Ending{Run: "old", Invocation: inv, Status: "done", Append: session.Append{Owner: ann, Session: "s"}})
			require.NoError(k, err)
			require.Equal(k, "waiting_credential", k.row(ann, "s").Status)
			require.Equal(k, auth.StatusPending, k.request("req").Status)
			i, err := k.s.Invocation(k.ctx, ann, inv)
			require.NoError(k, err)
			require.Equal(k, "running", i.Status)
		}},
	}
}

func reconcileCases() []testCase {
	abandoned := func(k *kit) (session.Session, string) {
		row := k.session(ann, "s")
		k.post(row, "m1", inv, "hello")
		k.take(row, theRun, "u")
		k.calls(row, theRun, "m", []string{"u"}, "c1", "c2", "c3")
		_, err := k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r1", "m"))
		require.NoError(k, err)
		_, err = k.s.Start(k.ctx, row, "c2")
		require.NoError(k, err)
		k.ask(row, "c3", "req", need(ann, "read"), "m")
		return k.row(ann, "s"), "req"
	}
	return []testCase{
		{"reconcile/what answers a call is seen where the call is", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", inv, "hello")
			k.take(row, theRun, "u")
			e := said("m", session.KindModel, theAgent, "", "u")
			e.InvocationID, e.Branch, e.IsolationScope = inv, "side.one", "outer"
			_, err := k.s.Append(k.ctx, session.Append{Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{e}, Calls: []session.Call{
				{ID: "c1", Invocation: inv, Event: "m", Agent: theAgent, Name: "send", Args: []byte("{}")},
			}})
			require.NoError(k, err)
			require.NoError(k, k.s.Abandon(k.ctx, k.row(ann, "s"), "failed"))
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			found, err := k.s.Events(k.ctx, row, []string{call.Answer})
			require.NoError(k, err)
			require.Equal(k, []string{"outer", "side.one"}, []string{found[0].IsolationScope, found[0].Branch})
		}},
		{"reconcile/a run that is gone leaves a session that can go on", func(k *kit) {
			row, request := abandoned(k)
			k.exchanging(request)
			require.NoError(k, k.s.Abandon(k.ctx, row, "failed"))
			require.Equal(k, "idle", k.row(ann, "s").Status)
			require.False(k, k.row(ann, "s").Closed)
			require.Equal(k, auth.StatusCancelled, k.request(request).Status)
			i, err := k.s.Invocation(k.ctx, ann, inv)
			require.NoError(k, err)
			require.Equal(k, "failed", i.Status)
			open, err := k.s.Open(k.ctx, row, inv, nil)
			require.NoError(k, err)
			require.Empty(k, open)

			k.post(row, "m2", "e-2", "go on")
			next, _ := k.take(row, "another run", "u2")
			view, err := session.NewViews(k.s, 1).View(k.ctx, row, []string{next.ID})
			require.NoError(k, err)
			require.Len(k, view, 7)
			for _, call := range []string{"c1", "c2", "c3"} {
				c, err := k.s.Call(k.ctx, row, call)
				require.NoError(k, err)
				require.Contains(k, ids(view), c.Answer)
			}
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c2", "late", "m"))
			require.ErrorIs(k, err, session.ErrAnswered, "what still ran on a worker")
		}},
		{"reconcile/not when another invocation has begun", func(k *kit) {
			row, request := abandoned(k)
			k.post(row, "m2", "e-2", "go on")
			k.take(row, theRun, "u2")
			require.NoError(k, k.s.Abandon(k.ctx, row, "failed"))
			require.Equal(k, auth.StatusPending, k.request(request).Status)
			require.Equal(k, "running", k.row(ann, "s").Status)
		}},
		{"reconcile/a job is closed", func(k *kit) {
			row := k.session(ann, "s")
			require.NoError(k, k.s.Post(k.ctx, ann, "s", "hash", "job", message("m1", inv, "hello")))
			k.take(row, theRun, "u")
			require.NoError(k, k.s.Abandon(k.ctx, k.row(ann, "s"), "failed"))
			require.True(k, k.row(ann, "s").Closed)
			require.Equal(k, "failed", k.row(ann, "s").Status)
		}},
		{"reconcile/lists what shows as running and is silent, oldest first", func(k *kit) {
			for _, id := range []string{"a", "b", "c", "done", "new"} {
				row := k.session(ann, id)
				if id != "new" {
					k.post(row, "m-"+id, "e-"+id, "hello")
					k.take(row, theRun, "u-"+id)
				}
				if id == "done" {
					_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: "e-" + id, Status: "done", Append: session.Append{Owner: ann, Session: id}})
					require.NoError(k, err)
				}
				k.clock.advance(time.Second)
			}
			require.NoError(k, k.s.Touch(k.ctx, k.row(ann, "a")))
			k.clock.advance(time.Second)
			found, err := k.s.Unsettled(k.ctx, k.clock.now(), 10)
			require.NoError(k, err)
			var got []string
			for _, s := range found {
				got = append(got, s.ID)
			}
			require.Equal(k, []string{"b", "c", "a"}, got)
			none, err := k.s.Unsettled(k.ctx, k.clock.now().Add(-time.Hour), 10)
			require.NoError(k, err)
			require.Empty(k, none)
		}},
	}
}

func inboxCases() []testCase {
	return []testCase{
		{"inbox/messages are taken in order, from where the session stands", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			k.post(row, "m2", "e-2", "two")
			now := k.row(ann, "s")
			require.Equal(k, "running", now.Status)
			require.Equal(k, "hash", now.Definition)
			require.Equal(k, "chat", now.Mode)

			first, inbox := k.take(row, theRun, "u1")
			require.Equal(k, "m1", inbox)
			require.Equal(k, "one", first.Text())
			require.Equal(k, agent.UserAuthor, first.Author)
			require.Equal(k, "e-1", first.InvocationID)
			require.Empty(k, first.Parents)
			require.Equal(k, "e-1", k.row(ann, "s").Invocation)

			second, inbox := k.take(row, theRun, "u2")
			require.Equal(k, "m2", inbox)
			require.Equal(k, []string{"u1"}, second.Parents)
			none, inbox := k.take(row, theRun, "u3")
			require.Nil(k, none)
			require.Empty(k, inbox)
		}},
		{"inbox/a repeat with the same event id is the same", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			k.post(row, "m2", "e-2", "two")
			first, _ := k.take(row, theRun, "u1")
			again, inbox := k.take(row, theRun, "u1", "elsewhere")
			require.Equal(k, first, again)
			require.Equal(k, "m1", inbox)
		}},
		{"inbox/given heads are the parents", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, model("a"), model("b", "a"))
			k.post(row, "m1", "e-1", "one")
			r, _ := k.take(row, theRun, "u1", "b")
			require.Equal(k, []string{"b"}, r.Parents)
		}},
		{"inbox/the nudge waits in the outbox until the message is taken", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			k.post(row, "m2", "e-2", "two")
			require.Equal(k, map[string]string{"m1": `tarry.message {"inbox":"m1"}`, "m2": `tarry.message {"inbox":"m2"}`}, k.outgoing())
			k.take(row, theRun, "u1")
			require.Equal(k, map[string]string{"m2": `tarry.message {"inbox":"m2"}`}, k.outgoing())
		}},
		{"inbox/invocations run from queued to their end", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			status := func() session.Invocation {
				i, err := k.s.Invocation(k.ctx, ann, "e-1")
				require.NoError(k, err)
				require.Equal(k, "s", i.Session)
				return i
			}
			require.Equal(k, "queued", status().Status)
			k.take(row, theRun, "u1")
			require.Equal(k, "running", status().Status)
			tips, err := k.s.Finish(k.ctx, row, session.Ending{
				Run: theRun, Invocation: "e-1", Status: "failed", Denied: true,
				Append: session.Append{Owner: ann, Session: "s", Events: []session.NewEvent{said("n", session.KindNotice, theAgent, "", "u1")}},
			})
			require.NoError(k, err)
			require.Equal(k, []string{"n"}, tips)
			require.Equal(k, "failed", status().Status)
			require.True(k, status().Denied)
			require.False(k, status().Ended.IsZero())
			require.Equal(k, "idle", k.row(ann, "s").Status)
			require.False(k, k.row(ann, "s").Closed)
		}},
		{"inbox/no more may wait than a run can carry", func(k *kit) {
			row := k.session(ann, "s")
			for n := range session.MaxQueued {
				k.post(row, fmt.Sprint("m", n), fmt.Sprint("e-", n), "more")
			}
			more := message("more", "e-more", "more")
			require.ErrorIs(k, k.s.Post(k.ctx, ann, "s", "hash", "chat", more), session.ErrFull)
			_, err := k.s.Invocation(k.ctx, ann, "e-more")
			require.ErrorIs(k, err, session.ErrNotFound, "nothing of it is stored")
			k.take(row, theRun, "u1")
			require.NoError(k, k.s.Post(k.ctx, ann, "s", "hash", "chat", more))
		}},
		{"inbox/a closed session takes nothing more and ends what is queued", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			k.take(row, theRun, "u1")
			k.post(row, "m2", "e-2", "two")
			_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: "e-1", Status: "done", Closed: true, Append: session.Append{Owner: ann, Session: "s"}})
			require.NoError(k, err)
			require.Equal(k, "done", k.row(ann, "s").Status)
			require.True(k, k.row(ann, "s").Closed)
			require.ErrorIs(k, k.s.Post(k.ctx, ann, "s", "hash", "chat", message("m3", "e-3", "three")), session.ErrClosed)
			queued, err := k.s.Invocation(k.ctx, ann, "e-2")
			require.NoError(k, err)
			require.Equal(k, "cancelled", queued.Status)
			require.False(k, queued.Ended.IsZero())
			require.Empty(k, k.outgoing(), "a nudge would start another run")
			r, _ := k.take(row, theRun, "u2")
			require.Nil(k, r)
		}},
		{"inbox/a run that was replaced takes no message away", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "old", model("a"))
			k.append(row, "new", model("b", "a"))
			k.post(row, "m1", "e-1", "one")
			stale, _ := k.take(row, "old", "x")
			require.Nil(k, stale)
			r, inbox := k.take(row, "new", "u")
			require.Equal(k, "m1", inbox)
			require.Equal(k, []string{"b"}, r.Parents)
		}},
		{"inbox/what a client cannot do with an event", func(k *kit) {
			row := k.session(ann, "s")
			m := message("m1", "e-1", "one")
			m.StateDelta = map[string]any{"app:limit": 1, "temp:x": 1, "user:lang": "de", "plan": "p"}
			m.Event.Author, m.Event.ID = theAgent, "forged"
			m.Event.Actions = session.Actions{Escalate: true, TransferToAgent: "critic", StateDelta: map[string]any{"app:limit": 2}}
			require.NoError(k, k.s.Post(k.ctx, ann, "s", "hash", "chat", m))
			r, _ := k.take(row, theRun, "u1")
			require.Equal(k, "u1", r.ID)
			require.Equal(k, agent.UserAuthor, r.Author)
			require.Equal(k, session.Actions{StateDelta: map[string]any{"user:lang": "de", "plan": "p"}}, session.Actions{
				StateDelta: r.Actions.StateDelta, Escalate: r.Actions.Escalate, TransferToAgent: r.Actions.TransferToAgent,
			})
			state, err := k.s.State(k.ctx, ann, "s")
			require.NoError(k, err)
			require.Equal(k, map[string]any{"user:lang": "de", "plan": "p"}, state)
		}},
		{"inbox/the first definition pins the session", func(k *kit) {
			row := k.session(ann, "s")
			k.post(row, "m1", "e-1", "one")
			require.NoError(k, k.s.Post(k.ctx, ann, "s", "newer", "job", message("m2", "e-2", "two")))
			require.Equal(k, "hash", k.row(ann, "s").Definition)
			require.Equal(k, "chat", k.row(ann, "s").Mode)
		}},
	}
}

func stateCases() []testCase {
	delta := func(id string, d map[string]any, parents ...string) session.NewEvent {
		e := model(id, parents...)
		e.Actions.StateDelta = d
		return e
	}
	return []testCase{
		{"state/scopes", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, delta("a", map[string]any{"app:limit": 5, "user:lang": "de", "temp:x": 1, "plan": "p"}))
			for owner, want := range map[agent.Owner]map[string]any{
				ann:      {"app:limit": 5.0, "user:lang": "de"},
				bob:      {"app:limit": 5.0},
				sameName: {},
			} {
				scoped, err := k.s.Scoped(k.ctx, owner)
				require.NoError(k, err)
				require.Equal(k, want, scoped, owner)
			}
			state, err := k.s.State(k.ctx, ann, "s")
			require.NoError(k, err)
			require.Equal(k, map[string]any{"app:limit": 5.0, "user:lang": "de", "plan": "p"}, state)
		}},
		{"state/null deletes, a later value wins", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, delta("a", map[string]any{"app:limit": 5, "user:lang": "de", "plan": "p", "kept": 1}))
			k.append(row, theRun, delta("b", map[string]any{"app:limit": 6, "user:lang": nil, "plan": nil}, "a"))
			state, err := k.s.State(k.ctx, ann, "s")
			require.NoError(k, err)
			require.Equal(k, map[string]any{"app:limit": 6.0, "kept": 1.0}, state)
		}},
		{"state/concurrent writers of the same keys", func(k *kit) {
			var wait sync.WaitGroup
			for i := range 6 {
				row := k.session(ann, fmt.Sprint("s", i))
				wait.Go(func() {
					k.append(row, theRun, delta(row.ID, map[string]any{"user:a": i, "user:b": i, "user:c": i, "app:d": i}))
				})
			}
			wait.Wait()
			scoped, err := k.s.Scoped(k.ctx, ann)
			require.NoError(k, err)
			require.Len(k, scoped, 4)
			require.Equal(k, scoped["user:a"], scoped["user:b"], "a delta is applied as one")
			require.Equal(k, scoped["user:a"], scoped["app:d"])
		}},
	}
}

func callCases() []testCase {
	return []testCase{
		{"call/start, release and answer", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			call, err := k.s.Start(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Equal(k, session.Call{ID: "c1", Session: "s", Invocation: inv, Event: "m", Last: "m", Agent: theAgent, Toolset: "mail", Name: "send", Args: []byte(`{"to":"x"}`)}, call)
			call, err = k.s.Start(k.ctx, row, "c1")
			require.NoError(k, err)
			require.True(k, call.Started, "an attempt before this one began and is not known to have ended")
			require.NoError(k, k.s.ReleaseCall(k.ctx, row, "c1"))
			call, err = k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.False(k, call.Started)

			open, err := k.s.Open(k.ctx, row, inv, nil)
			require.NoError(k, err)
			require.Len(k, open, 2)
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r1", "m"))
			require.NoError(k, err)
			call, err = k.s.Start(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Equal(k, "r1", call.Answer)
			require.False(k, call.Started)
			open, err = k.s.Open(k.ctx, row, inv, nil)
			require.NoError(k, err)
			require.Len(k, open, 1)
			require.Equal(k, "c2", open[0].ID)
		}},
		{"call/one that may be repeated is marked only once somebody was asked", func(k *kit) {
			row := k.session(ann, "s")
			_, err := k.s.Append(k.ctx, session.Append{
				Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{said("m", session.KindModel, theAgent, "")},
				Calls: []session.Call{{ID: "c1", Invocation: inv, Event: "m", Args: []byte(`{}`), Idempotent: true}},
			})
			require.NoError(k, err)
			for range 2 {
				call, err := k.s.Start(k.ctx, row, "c1")
				require.NoError(k, err)
				require.False(k, call.Started)
				require.True(k, call.MayHaveRun())
			}
			k.ask(row, "c1", "req", need(ann, "read"), "m")
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.False(k, call.MayHaveRun(), "it waits")
			for _, started := range []bool{false, true} {
				call, err := k.s.Start(k.ctx, row, "c1")
				require.NoError(k, err)
				require.Equal(k, started, call.Started)
			}
		}},
		{"call/exactly one answer", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1")
			_, err := k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r1", "m"))
			require.NoError(k, err)
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r1", "m"))
			require.NoError(k, err, "a retried attempt")
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r2", "m"))
			require.ErrorIs(k, err, session.ErrAnswered)
			require.Equal(k, []string{"m", "r1"}, k.timeline(row), "a second answer would stand in the model's view")
		}},
		{"call/belongs to its session", func(k *kit) {
			row, other := k.session(ann, "s"), k.session(bob, "s")
			k.calls(row, theRun, "m", nil, "c1")
			_, err := k.s.Call(k.ctx, other, "c1")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.Start(k.ctx, other, "c1")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.Append(k.ctx, answerOf(other, theRun, "c1", "r1"))
			require.ErrorIs(k, err, session.ErrNotFound)
			require.Empty(k, k.timeline(other))
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Empty(k, call.Answer)
		}},
		{"call/one of two attempts starts first", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1")
			second := k.handle()
			var wait sync.WaitGroup
			fresh := make(chan bool, 8)
			for i := range 8 {
				wait.Go(func() {
					h := k.s
					if i%2 == 1 {
						h = second
					}
					call, err := h.Start(k.ctx, row, "c1")
					if err == nil {
						fresh <- !call.Started
					}
				})
			}
			wait.Wait()
			close(fresh)
			n := 0
			for f := range fresh {
				if f {
					n++
				}
			}
			require.Equal(k, 1, n)
		}},
		{"call/an answer acts on its request, in the same transaction", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			require.Len(k, k.outgoing(), 1)
			a := answerOf(row, theRun, "call-splannerann", "r1", "event-"+request)
			a.Acted, a.Status = request, "running"
			_, err := k.s.Append(k.ctx, a)
			require.NoError(k, err)
			require.Empty(k, k.outgoing())
			n, err := k.s.Outstanding(k.ctx)
			require.NoError(k, err)
			require.Zero(k, n)
		}},
		{"call/large and odd arguments", func(k *kit) {
			row := k.session(ann, "s")
			args := `{"text":"` + strings.Repeat("é\\u0000?", 20000) + `"}`
			_, err := k.s.Append(k.ctx, session.Append{Owner: ann, Session: "s", Run: theRun, Calls: []session.Call{{ID: "c1", Invocation: inv, Args: []byte(args), Idempotent: true}}})
			require.NoError(k, err)
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Equal(k, args, string(call.Args))
			require.True(k, call.Idempotent)
		}},
	}
}
