package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

func inputNeed(o agent.Owner, call string) auth.Need {
	const server = "https://mcp.example/mcp"
	return auth.Need{Type: auth.TypeInput, Slot: auth.InputSlot(o, server, call), Server: server, Input: []byte("sealed question of " + call)}
}

func inputCases() []testCase {
	return []testCase{
		{"input/one answer of many counts", func(k *kit) {
			row := k.session(ann, "s")
			id := k.ask(row, "", "r", inputNeed(ann, "c")).Request.ID
			second := k.handle()
			var wait sync.WaitGroup
			var counted atomic.Int64
			for i := range 16 {
				h, status := k.s, auth.StatusGranted
				if i%2 == 1 {
					h, status = second, auth.StatusDenied
				}
				wait.Go(func() {
					_, err := h.AnswerInput(k.ctx, id, anyone, []byte(string(status)+fmt.Sprint(i)), status)
					switch {
					case err == nil:
						counted.Add(1)
					case !errors.Is(err, auth.ErrClosed):
						k.Error(err)
					}
				})
			}
			wait.Wait()
			require.EqualValues(k, 1, counted.Load(), "one hears that it counts")
			r := k.request(id)
			require.Contains(k, string(r.Need.Answer), string(r.Status), "status and answer are of one person's click")
			require.Len(k, k.outgoing(), 1)
			require.Equal(k, 1, count(k.audits(ann), "granted")+count(k.audits(ann), "denied"))
			require.Equal(k, "sealed question of c", string(r.Need.Input))
		}},
		{"input/nobody else answers, and nobody late", func(k *kit) {
			row := k.session(ann, "s")
			id := k.ask(row, "", "r", inputNeed(ann, "c")).Request.ID
			_, err := k.s.AnswerInput(k.ctx, id, func(o agent.Owner) bool { return o == bob }, []byte("x"), auth.StatusGranted)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			_, err = k.s.AnswerInput(k.ctx, "unknown", anyone, []byte("x"), auth.StatusGranted)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			k.finish(row)
			status, err := k.s.AnswerInput(k.ctx, id, anyone, []byte("x"), auth.StatusGranted)
			require.ErrorIs(k, err, auth.ErrClosed)
			require.Equal(k, auth.StatusCancelled, status)

			late := k.session(ann, "t")
			a, r := question(late, "", "late", inputNeed(ann, "d"))
			r.Deadline = k.clock.now().Add(time.Minute)
			_, err = k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			k.clock.advance(time.Hour)
			status, err = k.s.AnswerInput(k.ctx, "late", anyone, []byte("x"), auth.StatusGranted)
			require.ErrorIs(k, err, auth.ErrClosed)
			require.Equal(k, auth.StatusPending, status)
			for _, id := range []string{id, "late"} {
				require.Empty(k, k.request(id).Need.Answer)
			}
			require.Empty(k, k.outgoing())
		}},
		{"input/a login is not answered, and its session finds no other's answer", func(k *kit) {
			row, login := k.waiting(ann, "s", "read")
			_, err := k.s.AnswerInput(k.ctx, login, anyone, []byte("x"), auth.StatusGranted)
			require.ErrorIs(k, err, oauth.ErrConflict)
			require.Equal(k, auth.StatusPending, k.request(login).Status)

			for _, call := range []string{"c", "d"} {
				k.ask(row, "", call, inputNeed(ann, call))
			}
			_, err = k.s.AnswerInput(k.ctx, "c", anyone, []byte("x"), auth.StatusGranted)
			require.NoError(k, err)
			for slot, found := range map[auth.Slot]bool{
				inputNeed(ann, "c").Slot: true, inputNeed(ann, "d").Slot: false, inputNeed(bob, "c").Slot: false,
				auth.InputSlot(ann, "https://other.example/mcp", "c"): false,
			} {
				_, ok, err := k.s.Answered(k.ctx, row, slot)
				require.NoError(k, err)
				require.Equal(k, found, ok, slot)
			}
			_, ok, err := k.s.Answered(k.ctx, k.session(ann, "other"), inputNeed(ann, "c").Slot)
			require.NoError(k, err)
			require.False(k, ok, "another session")
			_, err = k.s.RequestOf(k.ctx, k.session(ann, "third"), "c")
			require.ErrorIs(k, err, oauth.ErrNotFound)
		}},
	}
}
