package store_test

import (
	"errors"
	"fmt"
	"slices"
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

func askCases() []testCase {
	return []testCase{
		{"ask/an attempt that finds another need waits for what was asked first", func(k *kit) {
			row := k.session(ann, "s")
			first := k.ask(row, "", "r", need(ann, "read"))
			k.login("r", "read")
			// The worker died before it could say so, and in the next attempt the server wants a form.
			n := auth.Need{Type: auth.TypeInput, Slot: auth.InputSlot(ann, "https://mcp.example", "c"), Input: []byte("sealed")}
			again := k.ask(row, "", "r", n)
			require.Equal(k, first.Event, again.Event)
			require.Equal(k, "mcp", again.Request.Need.Type)
			require.Equal(k, auth.StatusGranted, again.Request.Status, "the run hears of it and makes its call again")
		}},
		{"ask/a new request, its event and the mark on the call are one", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1")
			_, err := k.s.Start(k.ctx, row, "c1")
			require.NoError(k, err)
			a, r := question(row, "c1", "req", need(ann, "read"), "m")
			r.Deadline = k.clock.now().Add(time.Hour)
			asked, err := k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			r.Status, r.Created, r.Leader = auth.StatusPending, k.clock.now(), r.ID
			require.Equal(k, auth.Asked{Request: r, Event: "event-req"}, asked)
			require.Equal(k, r, k.request("req"))
			require.Equal(k, []string{"m", "event-req"}, k.timeline(row))
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Equal(k, "event-req", call.Asking)
			require.Equal(k, 1, call.Asked)
			require.False(k, call.Started, "nothing was executed")
			require.Equal(k, []string{"asked"}, k.audits(ann))
			issuer, err := k.s.Callback(k.ctx, oauth.CallbackDigest("https://id.example"))
			require.NoError(k, err)
			require.Equal(k, "https://id.example", issuer)
			_, err = k.s.Callback(k.ctx, "unknown")
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
		{"ask/a request is withdrawn with the last call that waits for it", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			k.ask(row, "c1", "req", need(ann, "read"), "m")
			require.Equal(k, "req", k.ask(row, "c2", "other", need(ann, "read"), "m").Request.ID)
			withdraw := func(row session.Session) bool {
				closed, err := k.s.WithdrawRequest(k.ctx, row, "req")
				require.NoError(k, err)
				return closed
			}
			_, err := k.s.Append(k.ctx, answerOf(row, theRun, "c1", "a1", "event-req"))
			require.NoError(k, err)
			require.False(k, withdraw(row))
			require.Equal(k, auth.StatusPending, k.request("req").Status)
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c2", "a2", "event-req"))
			require.NoError(k, err)
			_, err = k.s.WithdrawRequest(k.ctx, k.session(ann, "another"), "req")
			require.ErrorIs(k, err, oauth.ErrNotFound)
			require.True(k, withdraw(row))
			require.True(k, withdraw(row), "a repeat")
			require.Equal(k, auth.StatusCancelled, k.request("req").Status)
			require.Equal(k, []string{"asked", "cancelled"}, k.audits(ann))
		}},
		{"ask/a request that was granted is not withdrawn", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			closed, err := k.s.WithdrawRequest(k.ctx, row, request)
			require.NoError(k, err)
			require.False(k, closed)
			require.Equal(k, auth.StatusGranted, k.request(request).Status)
		}},
		{"ask/nothing is left of a question whose event conflicts", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1")
			a, r := question(row, "c1", "req", need(ann, "read"), "m")
			a.Events[0].ID = "m"
			_, err := k.s.Ask(k.ctx, a, r, render(a))
			require.ErrorIs(k, err, session.ErrConflict)
			_, err = k.s.Request(k.ctx, "req", anyone)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			require.Empty(k, k.audits(ann))
		}},
		{"ask/a retried attempt finds its own request", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1")
			first := k.ask(row, "c1", "req", need(ann, "read"), "m")
			again := k.ask(row, "c1", "req", need(ann, "read"), "m")
			require.Equal(k, first, again)
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.Equal(k, 1, call.Asked, "one request was opened, not two")
			require.Equal(k, []string{"asked"}, k.audits(ann))
			require.Len(k, k.timeline(row), 2)
		}},
		{"ask/requests of a session are coalesced by slot", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2", "c3", "c4")
			k.ask(row, "c1", "r1", need(ann, "read", "write"), "m")
			fewer := k.ask(row, "c2", "r2", need(ann, "read"), "m")
			require.Equal(k, "r1", fewer.Request.ID)
			require.Equal(k, "event-r1", fewer.Event)
			call, err := k.s.Call(k.ctx, row, "c2")
			require.NoError(k, err)
			require.Equal(k, "event-r1", call.Asking)

			require.Equal(k, "r3", k.ask(row, "c3", "r3", need(ann, "read", "admin"), "m").Request.ID, "more scopes than are asked for")
			other := need(ann, "read")
			other.Slot.Resource = "https://other.example"
			require.Equal(k, "r4", k.ask(row, "c4", "r4", other, "m").Request.ID, "another slot")

			elsewhere := k.session(ann, "t")
			require.Equal(k, "r5", k.ask(elsewhere, "", "r5", need(ann, "read")).Request.ID, "another session")
		}},
		{"ask/a coalesced question still acts on the request before", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			k.ask(row, "c1", "r1", need(ann, "read"), "m")
			k.login("r1", "read")
			refused := need(ann, "read")
			refused.Refused = k.grants(ann)[0].Version
			require.Equal(k, "r2", k.ask(row, "c2", "r2", refused, "m").Request.ID)
			a, r := question(row, "c1", "r3", refused, "m")
			a.Acted = "r1"
			asked, err := k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			require.Equal(k, "r2", asked.Request.ID)
			require.Empty(k, k.outgoing())
		}},
		{"ask/a denial sticks for the invocation", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			k.ask(row, "c1", "r1", need(ann, "read"), "m")
			require.NoError(k, k.s.Deny(k.ctx, k.exchanging("r1"), "access_denied"))
			_, err := k.s.Start(k.ctx, row, "c2")
			require.NoError(k, err)
			asked := k.ask(row, "c2", "r2", need(ann, "read", "write"), "m")
			require.True(k, asked.Denied)
			require.Equal(k, "r1", asked.Request.ID)
			call, err := k.s.Call(k.ctx, row, "c2")
			require.NoError(k, err)
			require.False(k, call.Started, "nothing was executed")
			require.False(k, k.ask(row, "c2", "r3", need(ann, "list"), "m").Denied, "another login")

			a, r := question(row, "c2", "r4", need(ann, "read"), "m")
			r.Invocation = "e-2"
			later, err := k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			require.False(k, later.Denied, "another invocation asks again")
			require.Equal(k, "r4", later.Request.ID)
		}},
		{"ask/a login elsewhere is stronger than a denial here", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			k.ask(row, "c1", "r1", need(ann, "read"), "m")
			require.NoError(k, k.s.Deny(k.ctx, k.exchanging("r1"), "access_denied"))
			_, elsewhere := k.waiting(ann, "t", "read")
			k.login(elsewhere, "read")
			require.True(k, k.ask(row, "c2", "r2", need(ann, "read"), "m").Granted)
		}},
		{"ask/a credential that is there already", func(k *kit) {
			_, request := k.waiting(ann, "s", "read", "write")
			k.login(request, "read", "write")
			row := k.session(ann, "t")
			k.calls(row, theRun, "m", nil, "c1")
			_, err := k.s.Start(k.ctx, row, "c1")
			require.NoError(k, err)
			asked := k.ask(row, "c1", "r2", need(ann, "read"), "m")
			require.Equal(k, auth.Asked{Granted: true}, asked)
			call, err := k.s.Call(k.ctx, row, "c1")
			require.NoError(k, err)
			require.False(k, call.Started, "a crash now must not make the call's outcome unknown")

			refused := need(ann, "read")
			refused.Refused = k.grants(ann)[0].Version
			require.Equal(k, "r3", k.ask(row, "c1", "r3", refused, "m").Request.ID, "the server refused that version")
			require.Equal(k, "r4", k.ask(row, "c1", "r4", need(ann, "admin"), "m").Request.ID, "it does not cover the scopes")

			moved := need(ann, "read")
			moved.Provider.TokenEndpoint = "https://id.example/v2/token"
			require.Equal(k, auth.StatusPending, k.ask(row, "c1", "r5", moved, "m").Request.Status, "the definition names another endpoint by now")
			moved.Provider.Discovered = true
			require.True(k, k.ask(row, "c1", "r6", moved, "m").Granted, "the issuer itself may move its endpoint")
		}},
		{"ask/an expired token without refresh is none", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			g := grant("read")
			g.Refresh, g.Expires, g.Life = nil, k.clock.now().Add(time.Minute), time.Minute
			_, err := k.s.Commit(k.ctx, k.exchanging(request), g)
			require.NoError(k, err)
			row := k.session(ann, "t")
			require.True(k, k.ask(row, "", "r2", need(ann, "read")).Granted)
			k.clock.advance(time.Hour)
			require.Equal(k, "r3", k.ask(row, "", "r3", need(ann, "read")).Request.ID)
		}},
		{"ask/only the owner sees a request", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			_, err := k.s.Request(k.ctx, request, func(o agent.Owner) bool { return o == bob })
			require.ErrorIs(k, err, oauth.ErrNotFound)
			_, later := k.waiting(ann, "t", "other")
			list := func(o agent.Owner, open bool) []string {
				found, err := k.s.Requests(k.ctx, o, open, 10)
				require.NoError(k, err)
				out := []string{}
				for _, r := range found {
					out = append(out, r.ID)
				}
				return out
			}
			require.Equal(k, []string{later, request}, list(ann, true))
			require.Empty(k, list(bob, false))
			k.login(later, "other")
			require.Equal(k, []string{request}, list(ann, true))
			require.Equal(k, []string{later, request}, list(ann, false))
		}},
		{"close/at the deadline", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			status, err := k.s.CloseRequest(k.ctx, row, request)
			require.NoError(k, err)
			require.Equal(k, auth.StatusExpired, status)
			require.Equal(k, []string{"asked", "opened", "expired"}, k.audits(ann))
			require.Empty(k, k.outgoing(), "the run that closes it knows")
			_, err = k.s.StartExchange(k.ctx, state, []byte("x"), "h", 0)
			require.ErrorIs(k, err, oauth.ErrConflict, "a late login changes nothing")
			f, err := k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Empty(k, f.Verifier)

			again, err := k.s.CloseRequest(k.ctx, row, request)
			require.NoError(k, err)
			require.Equal(k, auth.StatusExpired, again)
			require.Len(k, k.audits(ann), 3)
			_, err = k.s.CloseRequest(k.ctx, k.session(bob, "s"), request)
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
		{"close/finds a login that came first, or is on its way", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			state := k.exchanging(request)
			status, err := k.s.CloseRequest(k.ctx, row, request)
			require.NoError(k, err)
			require.Equal(k, auth.StatusExchanging, status)
			_, err = k.s.Commit(k.ctx, state, grant("read"))
			require.NoError(k, err)
			status, err = k.s.CloseRequest(k.ctx, row, request)
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, status)
		}},
		{"finish/cancels what the invocation asked, and its messages", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.calls(row, theRun, "m2", nil, "c2")
			k.ask(row, "c2", "granted", need(ann, "admin"), "m2")
			k.login("granted", "admin")
			a, r := question(row, "", "other", need(ann, "x"))
			r.Invocation = "e-2"
			_, err := k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			_, err = k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: inv, Status: "cancelled", Append: session.Append{Owner: ann, Session: "s"}})
			require.NoError(k, err)
			require.Equal(k, auth.StatusCancelled, k.request(request).Status)
			require.Equal(k, auth.StatusGranted, k.request("granted").Status)
			require.Equal(k, auth.StatusPending, k.request("other").Status)
			require.Empty(k, k.outgoing())
			require.Contains(k, k.audits(ann), "cancelled")
		}},
	}
}

func flowCases() []testCase {
	return []testCase{
		{"flow/begin and read", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			f := k.flow(request)
			f.ClientSecret = []byte("sealed secret")
			require.NoError(k, k.s.BeginFlow(k.ctx, f, 1))
			got, err := k.s.Flow(k.ctx, f.StateHash)
			require.NoError(k, err)
			f.Status, f.Created = oauth.FlowLive, k.clock.now()
			require.Equal(k, f, got)
			_, err = k.s.Flow(k.ctx, "unknown")
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
		{"flow/live flows are capped, expired ones do not count", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			for range 2 {
				require.NoError(k, k.s.BeginFlow(k.ctx, k.flow(request), 2))
			}
			require.ErrorIs(k, k.s.BeginFlow(k.ctx, k.flow(request), 2), oauth.ErrTooMany)
			k.clock.advance(time.Hour)
			require.NoError(k, k.s.BeginFlow(k.ctx, k.flow(request), 2))
		}},
		{"flow/the cap holds under a stampede", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			var wait sync.WaitGroup
			errs := make([]error, 12)
			for i := range errs {
				f := k.flow(request)
				wait.Go(func() { errs[i] = k.s.BeginFlow(k.ctx, f, 3) })
			}
			wait.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				}
			}
			require.Equal(k, 3, won, errors.Join(errs...))
		}},
		{"flow/only a pending request of the same owner", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			wrong := k.flow(request)
			wrong.Owner = bob
			require.ErrorIs(k, k.s.BeginFlow(k.ctx, wrong, 9), oauth.ErrConflict)
			k.exchanging(request)
			require.ErrorIs(k, k.s.BeginFlow(k.ctx, k.flow(request), 9), oauth.ErrConflict)
			none := k.flow(request)
			none.Request = "unknown"
			require.ErrorIs(k, k.s.BeginFlow(k.ctx, none, 9), oauth.ErrNotFound)
		}},
		{"flow/one callback of many wins the exchange", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			states := []string{k.begun(request), k.begun(request), k.begun(request)}
			second := k.handle()
			var wait sync.WaitGroup
			errs := make([]error, 12)
			for i := range errs {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					_, errs[i] = h.StartExchange(k.ctx, states[i%3], []byte("sealed code"), "h", time.Minute)
				})
			}
			wait.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
					continue
				}
				require.ErrorIs(k, err, oauth.ErrConflict)
			}
			require.Equal(k, 1, won)
			require.Equal(k, auth.StatusExchanging, k.request(request).Status)
		}},
		{"flow/the code is written ahead", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			lease := time.Minute
			f, err := k.s.StartExchange(k.ctx, state, []byte("sealed code"), "h", lease)
			require.NoError(k, err)
			require.Equal(k, oauth.FlowExchanging, f.Status)
			require.Equal(k, []byte("sealed code"), f.Code)
			require.Equal(k, []byte("sealed verifier"), f.Verifier)
			require.Equal(k, k.clock.now().Add(lease), f.Lease)
		}},
		{"flow/a refused code is never used, another is", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			require.NoError(k, k.s.Refuse(k.ctx, state, "browser", "stolen", 32))
			require.NoError(k, k.s.Refuse(k.ctx, state, "browser", "stolen", 32))
			require.NoError(k, k.s.Refuse(k.ctx, state, "incomplete", "", 32))
			_, err := k.s.StartExchange(k.ctx, state, []byte("x"), "stolen", time.Minute)
			require.ErrorIs(k, err, oauth.ErrConflict)
			require.Equal(k, auth.StatusPending, k.request(request).Status, "a refusal consumes nothing")
			_, err = k.s.StartExchange(k.ctx, state, []byte("x"), "", time.Minute)
			require.NoError(k, err)
			require.Equal(k, []string{"asked", "opened", "refused", "refused", "refused"}, k.audits(ann))
			require.ErrorIs(k, k.s.Refuse(k.ctx, "unknown", "x", "", 32), oauth.ErrNotFound)
		}},
		{"flow/refusals end, and with them the login, but not its request", func(k *kit) {
			const most, sent = 5, 12
			_, request := k.waiting(ann, "s", "read")
			state, second := k.begun(request), k.handle()
			for i := range most - 1 {
				require.NoError(k, k.s.Refuse(k.ctx, state, "browser", fmt.Sprint("code", i), most))
			}
			f, err := k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Equal(k, oauth.FlowLive, f.Status)
			var wait sync.WaitGroup
			for i := range sent {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					if err := h.Refuse(k.ctx, state, "browser", fmt.Sprint("later", i), most); err != nil {
						k.Error(err)
					}
				})
			}
			wait.Wait()
			f, err = k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Equal(k, oauth.FlowSpent, f.Status)
			require.Empty(k, f.Verifier)
			require.Equal(k, []string{"asked", "opened", "refused", "refused", "refused", "refused", "refused", "reopened"}, k.audits(ann))
			for i := range sent {
				_, err := k.s.StartExchange(k.ctx, state, []byte("x"), fmt.Sprint("later", i), time.Minute)
				require.ErrorIs(k, err, oauth.ErrConflict, "recorded or not")
			}
			require.Equal(k, auth.StatusPending, k.request(request).Status)
			k.login(request, "read")
		}},
		{"flow/refusals do not end a login that is being completed", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.exchanging(request)
			for i := range 5 {
				require.NoError(k, k.s.Refuse(k.ctx, state, "browser", fmt.Sprint("code", i), 2))
			}
			require.Equal(k, []string{"asked", "opened", "refused", "refused"}, k.audits(ann))
			_, err := k.s.Commit(k.ctx, state, grant("read"))
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, k.request(request).Status)
		}},
		{"flow/an expired flow exchanges nothing", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			k.clock.advance(time.Hour)
			_, err := k.s.StartExchange(k.ctx, state, []byte("x"), "h", time.Minute)
			require.ErrorIs(k, err, oauth.ErrConflict)
		}},
		{"flow/an interrupted exchange is resumed once, then reopened", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.exchanging(request)
			interrupted := func() []oauth.Flow {
				found, err := k.s.Interrupted(k.ctx, 10)
				require.NoError(k, err)
				return found
			}
			_, err := k.s.Resume(k.ctx, state, time.Minute)
			require.ErrorIs(k, err, oauth.ErrConflict, "the lease is running")
			require.Empty(k, interrupted())
			k.clock.advance(time.Hour)
			require.Len(k, interrupted(), 1)

			second := k.handle()
			var wait sync.WaitGroup
			var won sync.Map
			for i, h := range []interface {
				Resume(ctx ctxT, state string, lease time.Duration) (oauth.Flow, error)
			}{k.s, second, k.s, second} {
				wait.Go(func() {
					if f, err := h.Resume(k.ctx, state, time.Minute); err == nil {
						won.Store(i, f)
					}
				})
			}
			wait.Wait()
			n := 0
			won.Range(func(_, f any) bool {
				n++
				require.Equal(k, []byte("sealed code"), f.(oauth.Flow).Code)
				require.True(k, f.(oauth.Flow).Resumed)
				return true
			})
			require.Equal(k, 1, n)
			require.Empty(k, interrupted())

			k.clock.advance(time.Hour)
			require.Len(k, interrupted(), 1, "to be reopened")
			_, err = k.s.Resume(k.ctx, state, time.Minute)
			require.ErrorIs(k, err, oauth.ErrConflict, "one retry")
			require.NoError(k, k.s.Reopen(k.ctx, state, "interrupted twice"))
			require.Empty(k, interrupted())
			require.Equal(k, auth.StatusPending, k.request(request).Status)
			f, err := k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Equal(k, oauth.FlowSpent, f.Status)
			require.Empty(k, f.Code)
			require.Empty(k, f.Verifier)
			k.login(request, "read")
			require.Equal(k, []string{"asked", "opened", "reopened", "opened", "granted"}, k.audits(ann))
		}},
		{"flow/a late reopening does not touch the login that follows", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			slow := k.exchanging(request)
			require.NoError(k, k.s.Reopen(k.ctx, slow, "interrupted twice"))
			next := k.exchanging(request)
			require.ErrorIs(k, k.s.Reopen(k.ctx, slow, "unavailable"), oauth.ErrConflict)
			require.ErrorIs(k, k.s.Deny(k.ctx, slow, "access_denied"), oauth.ErrConflict)
			require.Equal(k, auth.StatusExchanging, k.request(request).Status)
			_, err := k.s.Commit(k.ctx, next, grant("read"))
			require.NoError(k, err)
			require.ErrorIs(k, k.s.Reopen(k.ctx, next, "late"), oauth.ErrConflict)
			require.Equal(k, []string{"asked", "opened", "reopened", "opened", "granted"}, k.audits(ann))
		}},
		{"flow/deny ends the request and tells its run, once", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			_, other := k.waiting(ann, "t", "write")
			state := k.exchanging(request)
			require.NoError(k, k.s.Deny(k.ctx, state, "access_denied"))
			require.Equal(k, auth.StatusDenied, k.request(request).Status)
			require.Equal(k, auth.StatusPending, k.request(other).Status, "a denial is for the request that was shown")
			require.Equal(k, map[string]string{request: fmt.Sprintf(`tarry.resolved {"outcome":"denied","request":%q}`, request)}, k.outgoing())
			require.ErrorIs(k, k.s.Deny(k.ctx, state, "access_denied"), oauth.ErrConflict)
			_, err := k.s.Commit(k.ctx, state, grant("read"))
			require.ErrorIs(k, err, oauth.ErrConflict)
			require.Empty(k, k.grants(ann))
		}},
	}
}

func grantCases() []testCase {
	return []testCase{
		{"commit/wakes every run of the owner, app and slot within the scopes", func(k *kit) {
			asker, request := k.waiting(ann, "s", "read")
			_, fewer := k.waiting(ann, "t", "read")
			_, more := k.waiting(ann, "u", "read", "admin")
			_, person := k.waiting(bob, "s", "read")
			_, app := k.waiting(sameName, "s", "read")
			row := k.session(ann, "v")
			elsewhere := need(ann, "read")
			elsewhere.Slot.Resource = "https://other.example"
			k.ask(row, "", "slot", elsewhere)

			woken := k.login(request, "read")
			var got []string
			for _, r := range woken {
				require.Equal(k, auth.StatusGranted, r.Status)
				got = append(got, r.ID)
			}
			require.ElementsMatch(k, []string{request, fewer}, got)
			for _, id := range []string{more, person, app, "slot"} {
				require.Equal(k, auth.StatusPending, k.request(id).Status, id)
			}
			out := k.outgoing()
			require.Len(k, out, 2)
			require.Equal(k, fmt.Sprintf(`tarry.resolved {"outcome":"granted","request":%q}`, request), out[request])
			require.Contains(k, out, fewer)
			require.Equal(k, 2, count(k.audits(ann), "granted"))
			require.Zero(k, count(k.audits(bob), "granted"))

			g := k.grants(ann)
			require.Len(k, g, 1)
			require.Equal(k, slot(ann), g[0].Slot)
			require.Equal(k, []byte("sealed access"), g[0].Access)
			require.Equal(k, "client", g[0].Client.ID)
			require.Equal(k, int64(1), g[0].Version)
			require.NotEmpty(k, g[0].ID)
			require.Empty(k, k.grants(bob))
			require.Empty(k, k.grants(sameName))
			require.Len(k, k.timeline(asker), 2)
		}},
		{"commit/a grant of less still answers the request that asked", func(k *kit) {
			row, request := k.waiting(ann, "s", "read", "write")
			k.login(request, "read")
			require.Equal(k, auth.StatusGranted, k.request(request).Status)
			require.Equal(k, "again", k.ask(row, "", "again", need(ann, "read", "write")).Request.ID)
		}},
		{"commit/once", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			state := k.exchanging(request)
			_, err := k.s.Commit(k.ctx, state, grant("read"))
			require.NoError(k, err)
			_, err = k.s.Commit(k.ctx, state, grant("read"))
			require.ErrorIs(k, err, oauth.ErrConflict)
			require.Equal(k, int64(1), k.grants(ann)[0].Version)
			_, err = k.s.Commit(k.ctx, "unknown", grant("read"))
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
		{"commit/a login that outlived its lease still counts", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			slow := k.exchanging(request)
			require.NoError(k, k.s.Reopen(k.ctx, slow, "interrupted twice"))
			_, err := k.s.Commit(k.ctx, slow, grant("read"))
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, k.request(request).Status)
		}},
		{"flows/a device code is polled by one, and forgotten at the end", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			f := k.flow(request)
			f.Device, f.Pace = []byte("sealed device"), 5*time.Second
			require.NoError(k, k.s.BeginFlow(k.ctx, f, 8))
			k.begun(request) // a login with a browser is not polled
			other := k.handle()
			due := func() (n int) {
				for _, s := range []*store.Store{k.s, other} {
					found, err := s.DueDevices(k.ctx, 10, time.Minute)
					require.NoError(k, err)
					n += len(found)
				}
				return n
			}
			require.Zero(k, due(), "not before its pace")
			k.clock.advance(5 * time.Second)
			require.Equal(k, 1, due())
			k.clock.advance(time.Minute)
			require.Equal(k, 1, due(), "who had it died")
			require.NoError(k, k.s.DevicePolled(k.ctx, f.StateHash, 10*time.Second))
			k.clock.advance(9 * time.Second)
			require.Zero(k, due())
			k.clock.advance(time.Second)
			require.Equal(k, 1, due())
			stored, err := k.s.Flow(k.ctx, f.StateHash)
			require.NoError(k, err)
			require.Equal(k, 10*time.Second, stored.Pace)
			require.Equal(k, "sealed device", string(stored.Device))

			require.NoError(k, k.s.EndDevice(k.ctx, f.StateHash, "expired_token"))
			require.ErrorIs(k, k.s.EndDevice(k.ctx, f.StateHash, "expired_token"), oauth.ErrConflict)
			require.Equal(k, auth.StatusPending, k.request(request).Status)
			stored, err = k.s.Flow(k.ctx, f.StateHash)
			require.NoError(k, err)
			require.Empty(k, stored.Device)
			k.clock.advance(time.Hour)
			require.Zero(k, due())
			require.Equal(k, "reopened", k.audits(ann)[len(k.audits(ann))-1])

			next := k.flow(request)
			next.Device, next.Pace = []byte("sealed device"), time.Second
			next.Expires = k.clock.now().Add(time.Hour)
			require.NoError(k, k.s.BeginFlow(k.ctx, next, 8))
			_, err = k.s.Commit(k.ctx, next.StateHash, grant("read"))
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, k.request(request).Status)
			stored, err = k.s.Flow(k.ctx, next.StateHash)
			require.NoError(k, err)
			require.Empty(k, stored.Device, "the code is spent")
		}},
		{"grants/a login without an ID token does not answer who sends one", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			sends := need(ann, "read")
			sends.IDToken = true
			k.ask(row, "", "id", sends)
			k.login(request, "read")
			require.Equal(k, auth.StatusPending, k.request("id").Status)
			g := grant("read")
			g.IDToken = []byte("sealed id")
			_, err := k.s.Commit(k.ctx, k.exchanging("id"), g)
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, k.request("id").Status)
		}},
		{"grants/versions grow over new logins, refreshes and drops", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			first := k.grants(ann)[0]
			next := first
			next.Access = []byte("sealed access 2")
			saved, err := k.s.SaveRefresh(k.ctx, first.Version, next)
			require.NoError(k, err)
			require.True(k, saved)
			require.Equal(k, int64(2), k.grants(ann)[0].Version)
			require.NoError(k, k.s.Drop(k.ctx, ann, first.ID, 1, "invalid_grant"))
			require.Len(k, k.grants(ann), 1, "an older version is no reason")
			require.NoError(k, k.s.Drop(k.ctx, bob, first.ID, 2, "invalid_grant"))
			require.Len(k, k.grants(ann), 1)
			require.NoError(k, k.s.Drop(k.ctx, ann, first.ID, 2, "invalid_grant"))
			require.Empty(k, k.grants(ann))
			refused := need(ann, "read")
			refused.Refused = 2
			k.ask(row, "", "again", refused)
			k.login("again", "read")
			require.Equal(k, int64(3), k.grants(ann)[0].Version)
			require.Equal(k, []string{"asked", "opened", "granted", "refreshed", "dropped", "asked", "opened", "granted"}, k.audits(ann))
		}},
		{"grants/refresh is a compare-and-set", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			g := k.grants(ann)[0]
			second := k.handle()
			var wait sync.WaitGroup
			won := make(chan int, 8)
			for i := range 8 {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					next := g
					next.Access = fmt.Appendf(nil, "sealed %d", i)
					next.Expires = k.clock.now().Add(time.Hour)
					if saved, err := h.SaveRefresh(k.ctx, g.Version, next); err == nil && saved {
						won <- i
					}
				})
			}
			wait.Wait()
			require.Len(k, won, 1)
			now := k.grants(ann)[0]
			require.Equal(k, fmt.Sprintf("sealed %d", <-won), string(now.Access))
			require.Equal(k, g.Version+1, now.Version)
			require.Equal(k, g.ID, now.ID)
			require.Equal(k, k.clock.now().Add(time.Hour), now.Expires)
			require.Equal(k, g.Client, now.Client)
		}},
		{"grants/the account stays over refreshes, a login may bring another", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			g := grant("read")
			g.IDToken, g.Account = []byte("sealed id"), oauth.Account{Subject: "sub-1", Label: "ann@example.com"}
			_, err := k.s.Commit(k.ctx, k.exchanging(request), g)
			require.NoError(k, err)
			stored := k.grants(ann)[0]
			require.Equal(k, g.Account, stored.Account)
			require.Equal(k, "sealed id", string(stored.IDToken))

			stored.IDToken, stored.Account = []byte("sealed id 2"), oauth.Account{Subject: "sub-2", Label: "eve@example.com"}
			saved, err := k.s.SaveRefresh(k.ctx, stored.Version, stored)
			require.NoError(k, err)
			require.True(k, saved)
			stored = k.grants(ann)[0]
			require.Equal(k, g.Account, stored.Account)
			require.Equal(k, "sealed id 2", string(stored.IDToken))

			k.ask(row, "", "again", need(ann, "read", "write"))
			k.login("again", "read", "write")
			require.Zero(k, k.grants(ann)[0].Account)
			require.Empty(k, k.grants(ann)[0].IDToken)
		}},
		{"grants/one holder of a lease", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			g := k.grants(ann)[0]
			second := k.handle()
			until := time.Minute
			var wait sync.WaitGroup
			won := make(chan bool, 12)
			for i := range 12 {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					if got, ok, err := h.Lease(k.ctx, ann, g.ID, g.Version, until); err == nil && ok {
						won <- got.Version == g.Version
					}
				})
			}
			wait.Wait()
			require.Len(k, won, 1)
			require.True(k, <-won)

			require.NoError(k, k.s.Release(k.ctx, ann, g.ID, g.Version))
			_, ok, err := k.s.Lease(k.ctx, ann, g.ID, g.Version, until)
			require.NoError(k, err)
			require.True(k, ok)
			k.clock.advance(time.Hour)
			_, ok, err = k.s.Lease(k.ctx, ann, g.ID, g.Version, time.Minute)
			require.NoError(k, err)
			require.True(k, ok, "the holder died")
			saved, err := k.s.SaveRefresh(k.ctx, g.Version, g)
			require.NoError(k, err)
			require.True(k, saved)
			now, ok, err := k.s.Lease(k.ctx, ann, g.ID, g.Version, until)
			require.NoError(k, err)
			require.False(k, ok)
			require.Equal(k, g.Version+1, now.Version)
			_, _, err = k.s.Lease(k.ctx, bob, g.ID, g.Version, until)
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
		{"grants/a query names the slot, any issuer or one", func(k *kit) {
			row := k.session(ann, "s")
			for i, issuer := range []string{"https://one.example", "https://two.example"} {
				n := need(ann, "read")
				n.Slot.Issuer = issuer
				k.ask(row, "", fmt.Sprint("r", i), n)
				k.login(fmt.Sprint("r", i), "read")
				k.clock.advance(time.Second)
			}
			sl := slot(ann)
			q := oauth.GrantQuery{Owner: ann, Resource: sl.Resource, Client: sl.Client}
			found, err := k.s.Grants(k.ctx, q)
			require.NoError(k, err)
			require.Len(k, found, 2)
			require.Equal(k, "https://two.example", found[0].Slot.Issuer, "newest first")
			q.Issuer = "https://one.example"
			found, err = k.s.Grants(k.ctx, q)
			require.NoError(k, err)
			require.Len(k, found, 1)
			for _, miss := range []oauth.GrantQuery{
				{Owner: bob, Resource: sl.Resource, Client: sl.Client},
				{Owner: ann, Resource: "https://other.example", Client: sl.Client},
				{Owner: ann, Resource: sl.Resource, Client: "pre:x"},
				{Owner: ann, Resource: sl.Resource, Client: sl.Client, Domain: "own"},
			} {
				found, err = k.s.Grants(k.ctx, miss)
				require.NoError(k, err)
				require.Empty(k, found)
			}
		}},
		{"grants/use is written down", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			require.NoError(k, k.s.Used(k.ctx, k.grants(ann)[0], oauth.Use{Session: "s", Agent: "root", Tool: "send"}))
			rows := k.audited(ann)
			require.NotEmpty(k, rows)
			last := rows[len(rows)-1]
			require.Equal(k, "used", last.Action)
			require.Equal(k, "root send", last.Detail)
			require.Equal(k, "s", last.Session)
			require.Equal(k, k.clock.now(), rows[0].At)
		}},
		{"registrations/the first one wins", func(k *kit) {
			second := k.handle()
			reg := func(id string) oauth.Registration {
				return oauth.Registration{Issuer: "https://id.example", RedirectURI: "https://tarry.example/cb", ClientID: id, Secret: []byte("sealed"), Auth: "client_secret_basic"}
			}
			var wait sync.WaitGroup
			got := make([]string, 8)
			for i := range got {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					if r, err := h.Register(k.ctx, reg(fmt.Sprint("client", i))); err == nil {
						got[i] = r.ClientID
					}
				})
			}
			wait.Wait()
			require.Len(k, slices.Compact(got), 1)
			found, err := k.s.Registration(k.ctx, "https://id.example", "https://tarry.example/cb")
			require.NoError(k, err)
			want := reg(got[0])
			want.Created = k.clock.now()
			require.Equal(k, want, found)
			require.NoError(k, k.s.Unregister(k.ctx, "https://id.example", "https://tarry.example/cb", "another"))
			_, err = k.s.Registration(k.ctx, "https://id.example", "https://tarry.example/cb")
			require.NoError(k, err)
			require.NoError(k, k.s.Unregister(k.ctx, "https://id.example", "https://tarry.example/cb", got[0]))
			_, err = k.s.Registration(k.ctx, "https://id.example", "https://tarry.example/cb")
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
	}
}

func count(list []string, of string) (n int) {
	for _, s := range list {
		if s == of {
			n++
		}
	}
	return n
}

// Nothing in the audit table or the outbox tells what the vault keeps.
func TestSecretsStayInTheirColumns(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, fresh(t))
			_, request := k.waiting(ann, "s", "read")
			state := k.begun(request)
			require.NoError(t, k.s.Refuse(k.ctx, state, "browser", "stolen-hash", 32))
			k.login(request, "read")
			rows := k.audited(ann)
			due, err := k.s.Due(k.ctx, 100, time.Minute)
			require.NoError(t, err)
			text := fmt.Sprintf("%+v %+v", rows, due)
			for _, secret := range []string{"sealed", "stolen", "cookie", state} {
				require.NotContains(t, text, secret)
			}
		})
	}
}
