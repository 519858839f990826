package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/outbox"
	"tarry/session"
)

type ctxT = context.Context

func outboxCases() []testCase {
	post := func(k *kit, n int) {
		row := k.session(ann, "s")
		for i := range n {
			k.post(row, fmt.Sprint("m", i), fmt.Sprint("e-", i), "hello")
		}
	}
	due := func(k *kit, limit int) []outbox.Message {
		found, err := k.s.Due(k.ctx, limit, time.Minute)
		require.NoError(k, err)
		return found
	}
	return []testCase{
		{"outbox/a claim is exclusive while it lasts", func(k *kit) {
			post(k, 3)
			first := due(k, 2)
			require.Len(k, first, 2)
			require.Equal(k, "tarry.message", first[0].Signal)
			require.Equal(k, workflowID(ann, "s"), first[0].WorkflowID)
			require.Len(k, due(k, 9), 1)
			require.Empty(k, due(k, 9))
			k.clock.advance(2 * time.Minute)
			require.Len(k, due(k, 9), 3)
		}},
		{"outbox/two dispatchers share the work", func(k *kit) {
			post(k, 60)
			second := k.handle()
			var mu sync.Mutex
			got := map[string]int{}
			var wait sync.WaitGroup
			for i := range 6 {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					for {
						found, err := h.Due(k.ctx, 7, time.Minute)
						if err != nil || len(found) == 0 {
							return
						}
						mu.Lock()
						for _, m := range found {
							got[m.ID]++
						}
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			require.Len(k, got, 60)
			for id, n := range got {
				require.Equal(k, 1, n, id)
			}
		}},
		{"outbox/sent comes up again until the run has acted", func(k *kit) {
			post(k, 1)
			m := due(k, 1)[0]
			require.NoError(k, k.s.Failed(k.ctx, m.ID, time.Second))
			k.clock.advance(2 * time.Second)
			m = due(k, 1)[0]
			require.Equal(k, 1, m.Failed)
			require.NoError(k, k.s.Sent(k.ctx, m.ID, time.Hour))
			k.clock.advance(2 * time.Minute)
			require.Empty(k, due(k, 1))
			k.clock.advance(time.Hour)
			m = due(k, 1)[0]
			require.Equal(k, 1, m.Sent)
			require.Zero(k, m.Failed)
			k.take(k.row(ann, "s"), theRun, "u")
			require.NoError(k, k.s.Sent(k.ctx, m.ID, 0), "recorded after the run had acted")
			k.clock.advance(time.Hour)
			require.Empty(k, due(k, 1))
			n, err := k.s.Outstanding(k.ctx)
			require.NoError(k, err)
			require.Zero(k, n)
		}},
		{"outbox/gone is final", func(k *kit) {
			post(k, 2)
			found := due(k, 2)
			require.NoError(k, k.s.Gone(k.ctx, found[0].ID))
			k.clock.advance(time.Hour)
			left := due(k, 9)
			require.Len(k, left, 1)
			require.Equal(k, found[1].ID, left[0].ID)
		}},
	}
}

func definitionCases() []testCase {
	definition := func(app, instruction string) *agent.Definition {
		return &agent.Definition{App: app, Root: &agent.Agent{Name: "root", Kind: agent.KindLLM, Model: "scripted", Instruction: instruction}}
	}
	return []testCase{
		{"definitions/publish, find by hash, by app, all", func(k *kit) {
			old, now := definition("planner", "old"), definition("planner", "new")
			for _, d := range []*agent.Definition{old, now, definition("writer", "w"), now} {
				require.NoError(k, k.s.Publish(k.ctx, d))
			}
			hash, err := old.Hash()
			require.NoError(k, err)
			found, err := k.s.Definition(k.ctx, hash)
			require.NoError(k, err)
			again, err := found.Hash()
			require.NoError(k, err)
			require.Equal(k, hash, again, "what is stored is what was published")
			current, err := k.s.App(k.ctx, "planner")
			require.NoError(k, err)
			require.Equal(k, "new", current.Root.Instruction)
			apps, err := k.s.Apps(k.ctx)
			require.NoError(k, err)
			require.Len(k, apps, 2)
			require.Equal(k, "writer", apps[1].App)
			_, err = k.s.App(k.ctx, "none")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.Definition(k.ctx, "none")
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"definitions/listings are stored once, for their session", func(k *kit) {
			row := k.session(ann, "s")
			require.NoError(k, k.s.SaveListing(k.ctx, row, "l", "mail", []byte(`{"tools":[]}`)))
			require.NoError(k, k.s.SaveListing(k.ctx, row, "l", "mail", []byte(`{"tools":null}`)))
			toolset, body, err := k.s.Listing(k.ctx, row, "l")
			require.NoError(k, err)
			require.Equal(k, "mail", toolset)
			require.JSONEq(k, `{"tools":[]}`, string(body))
			_, _, err = k.s.Listing(k.ctx, k.session(bob, "s"), "l")
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"check/the first value stays, over handles", func(k *kit) {
			second := k.handle()
			got := make([]string, 8)
			var wait sync.WaitGroup
			for i := range got {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					value, err := h.Check(k.ctx, "keyset", func() ([]byte, error) { return fmt.Appendf(nil, "value %d", i), nil })
					if err == nil {
						got[i] = string(value)
					}
				})
			}
			wait.Wait()
			require.NotEmpty(k, got[0])
			for _, g := range got {
				require.Equal(k, got[0], g)
			}
			broken := errors.New("no entropy")
			_, err := k.s.Check(k.ctx, "other", func() ([]byte, error) { return nil, broken })
			require.ErrorIs(k, err, broken)
			value, err := k.s.Check(k.ctx, "other", func() ([]byte, error) { return []byte("v"), nil })
			require.NoError(k, err)
			require.Equal(k, "v", string(value))
		}},
	}
}
