package store_test

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

func (k *kit) accounts(q oauth.AccountQuery) []oauth.Grant {
	k.Helper()
	q.Limit = 10
	page, err := k.s.Accounts(k.ctx, q, anyone)
	require.NoError(k, err)
	return page.Grants
}

func accountCases() []testCase {
	return []testCase{
		{"accounts/of one person, without the app's own", func(k *kit) {
			for i, issuer := range []string{"https://a.example", "https://b.example", "https://b.example", "https://c.example"} {
				sl := auth.Slot{Owner: ann, Issuer: issuer, Resource: k.id("r"), Client: auth.ClientDynamic}
				if i == 3 {
					sl.Client = auth.ClientOwn + "id"
				}
				_, err := k.s.Keep(k.ctx, oauth.Grant{Slot: sl, Access: []byte("a")})
				require.NoError(k, err)
			}
			for _, other := range []auth.Slot{{Owner: bob}, {Owner: sameName}} {
				other.Client = auth.ClientMetadata
				_, err := k.s.Keep(k.ctx, oauth.Grant{Slot: other, Access: []byte("a")})
				require.NoError(k, err)
			}
			require.Len(k, k.accounts(oauth.AccountQuery{App: "planner", User: "ann"}), 3)
			require.Len(k, k.accounts(oauth.AccountQuery{User: "ann"}), 4)
			require.Empty(k, k.accounts(oauth.AccountQuery{User: "a%"}))
			page, err := k.s.Accounts(k.ctx, oauth.AccountQuery{User: "ann", Limit: 3}, only(sameName))
			require.NoError(k, err)
			require.Empty(k, page.Grants)
			page, err = k.s.Accounts(k.ctx, oauth.AccountQuery{User: "ann", Limit: 3, After: page.Next}, only(sameName))
			require.NoError(k, err)
			require.Len(k, page.Grants, 1)
			require.Empty(k, page.Next)
			_, err = k.s.Accounts(k.ctx, oauth.AccountQuery{User: "ann", Limit: 3, After: "!"}, anyone)
			require.ErrorIs(k, err, auth.ErrCursor)
		}},
		{"accounts/no refresh brings a removed one back", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			g := k.grants(ann)[0]
			leased, ours, err := k.s.Lease(k.ctx, ann, g.ID, g.Version, time.Minute)
			require.NoError(k, err)
			require.True(k, ours)
			for _, other := range []oauth.Grant{{ID: "nowhere"}, {ID: g.ID, Slot: slot(bob)}, {ID: g.ID, Slot: slot(sameName)}} {
				owner := other.Slot.Owner
				if owner.App == "" {
					owner = ann
				}
				_, err := k.s.Remove(k.ctx, owner, other.ID)
				require.ErrorIs(k, err, oauth.ErrNotFound)
			}
			removed, err := k.s.Remove(auth.WithActor(k.ctx, "ann herself"), ann, g.ID)
			require.NoError(k, err)
			require.Equal(k, g.Refresh, removed.Refresh)
			saved, err := k.s.SaveRefresh(k.ctx, leased.Version, leased)
			require.NoError(k, err)
			require.False(k, saved)
			require.Empty(k, k.grants(ann))
			require.NoError(k, k.s.Revoked(k.ctx, removed, "told"))
			page, err := k.s.Audit(k.ctx, auth.AuditQuery{Action: "deleted"}, anyone, 10)
			require.NoError(k, err)
			require.Len(k, page.Rows, 1)
			require.Equal(k, "ann herself", page.Rows[0].Actor)
		}},
		{"accounts/a refresh and a removal at once", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			for range 20 {
				g := k.grants(ann)[0]
				other := k.handle()
				var group sync.WaitGroup
				var saved bool
				var saveErr, removeErr error
				group.Go(func() { saved, saveErr = k.s.SaveRefresh(k.ctx, g.Version, g) })
				group.Go(func() { _, removeErr = other.Remove(k.ctx, ann, g.ID) })
				group.Wait()
				require.NoError(k, saveErr)
				require.NoError(k, removeErr)
				require.Empty(k, k.grants(ann), "saved: %v", saved)
				_, err := k.s.Keep(k.ctx, oauth.Grant{Slot: slot(ann), Access: []byte("a"), Refresh: []byte("r")})
				require.NoError(k, err)
			}
		}},
		{"accounts/a login under way is not lost with the account before", func(k *kit) {
			row, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			before := k.grants(ann)[0]
			k.ask(row, "", "more", need(ann, "read", "write"))
			state := k.exchanging("more")
			_, err := k.s.Remove(k.ctx, ann, before.ID)
			require.NoError(k, err)
			woken, err := k.s.Commit(k.ctx, state, grant("read", "write"))
			require.NoError(k, err)
			require.Len(k, woken, 1)
			after := k.grants(ann)[0]
			require.Greater(k, after.Version, before.Version, "no version is used twice")
			_, err = k.s.Remove(k.ctx, ann, before.ID)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			require.Len(k, k.grants(ann), 1)
		}},
		{"accounts/another one waits for its person", func(k *kit) {
			as := func(subject string, scopes ...string) oauth.Grant {
				g := grant(scopes...)
				g.Account, g.Expires, g.Life = oauth.Account{Subject: subject}, k.clock.now().Add(time.Hour), time.Hour
				return g
			}
			row, request := k.waiting(ann, "s", "read")
			_, err := k.s.Commit(k.ctx, k.exchanging(request), as("one", "read"))
			require.NoError(k, err)
			before := k.grants(ann)[0]
			k.ask(row, "", "more", need(ann, "read", "write"))
			state := k.exchanging("more")
			other := as("two", "read", "write")
			_, err = k.s.Commit(k.ctx, state, other)
			require.ErrorIs(k, err, oauth.ErrOtherAccount)
			require.Equal(k, auth.StatusExchanging, k.request("more").Status, "nothing was changed")
			other.Replaces = before.ID
			_, err = k.s.Commit(k.ctx, state, other)
			require.ErrorIs(k, err, oauth.ErrConflict, "nobody was asked")

			require.NoError(k, k.s.Park(k.ctx, state, []byte("sealed grant")))
			require.ErrorIs(k, k.s.Park(k.ctx, state, []byte("again")), oauth.ErrConflict)
			f, err := k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Equal(k, oauth.FlowParked, f.Status)
			require.Equal(k, "sealed grant", string(f.Code))
			require.Empty(k, f.Verifier)
			require.Equal(k, auth.StatusPending, k.request("more").Status)
			require.ErrorIs(k, k.s.Reopen(k.ctx, state, "late"), oauth.ErrConflict)
			late, err := k.s.Parked(k.ctx, 10)
			require.NoError(k, err)
			require.Empty(k, late)

			k.clock.advance(10 * time.Minute)
			other.Replaces = "another"
			_, err = k.s.Commit(k.ctx, state, other)
			require.ErrorIs(k, err, oauth.ErrOtherAccount)
			other.Replaces = before.ID
			woken, err := k.s.Commit(k.ctx, state, other)
			require.NoError(k, err)
			require.Len(k, woken, 1)
			after := k.grants(ann)[0]
			require.Equal(k, "two", after.Account.Subject)
			require.Equal(k, 50*time.Minute, after.Left(), "tokens age while they are parked")
			require.ErrorIs(k, k.s.Unpark(k.ctx, state, "no"), oauth.ErrConflict)

			k.ask(row, "", "third", need(ann, "admin"))
			state = k.exchanging("third")
			require.NoError(k, k.s.Park(k.ctx, state, []byte("sealed grant")))
			k.clock.advance(time.Hour)
			late, err = k.s.Parked(k.ctx, 10)
			require.NoError(k, err)
			require.Len(k, late, 1)
			require.NoError(k, k.s.Unpark(k.ctx, state, "no"))
			require.ErrorIs(k, k.s.Unpark(k.ctx, state, "no"), oauth.ErrConflict)
			f, err = k.s.Flow(k.ctx, state)
			require.NoError(k, err)
			require.Empty(k, f.Code)
			require.Equal(k, auth.StatusPending, k.request("third").Status)
		}},
		{"accounts/know when they were used, to the minute", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			k.login(request, "read")
			require.Zero(k, k.grants(ann)[0].Used)
			first := k.clock.now()
			for range 3 {
				require.NoError(k, k.s.Used(k.ctx, k.grants(ann)[0], oauth.Use{Tool: "send"}))
				require.Equal(k, first, k.grants(ann)[0].Used)
				k.clock.advance(15 * time.Second)
			}
			k.clock.advance(time.Minute)
			require.NoError(k, k.s.Used(k.ctx, k.grants(ann)[0], oauth.Use{Tool: "send"}))
			require.Equal(k, k.clock.now(), k.grants(ann)[0].Used)
		}},
	}
}

func only(o agent.Owner) auth.Access { return func(other agent.Owner) bool { return o == other } }
