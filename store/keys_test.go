package store_test

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// keyNeed is what a tool wants that is sent an API key.
func keyNeed(o agent.Owner, refused int64) auth.Need {
	k := &auth.Key{In: agent.InHeader, Name: "X-Key"}
	return auth.Need{
		Type: string(agent.AuthAPIKey), Tool: "send", Toolset: "mail", Server: "https://mcp.example/mcp", Refused: refused, Typed: k,
		Slot:     auth.Slot{Owner: o, Issuer: "https://mcp.example", Resource: "server:https://mcp.example/mcp", Client: k.Client()},
		Provider: auth.Provider{Issuer: "https://mcp.example"}, Client: auth.Client{ID: k.Client()},
	}
}

func keyGrant(n auth.Need, sealed string) oauth.Grant {
	return oauth.Grant{ID: "grant " + sealed, Slot: n.Slot, Access: []byte(sealed), Provider: n.Provider, Client: n.Client}
}

func keyCases() []testCase {
	return []testCase{
		{"key/one wakes all that wait for it, of one person and app", func(k *kit) {
			n := keyNeed(ann, 0)
			for _, id := range []string{"a", "b"} {
				k.ask(k.session(ann, id), "", id, n)
			}
			require.Equal(k, k.request("a").Leader, k.request("b").Leader, "they share a link")
			k.ask(k.session(bob, "c"), "", "c", keyNeed(bob, 0))
			k.ask(k.session(sameName, "d"), "", "d", keyNeed(sameName, 0))
			other := keyNeed(ann, 0)
			other.Typed = &auth.Key{In: agent.InQuery, Name: "X-Key"}
			other.Slot.Client, other.Client.ID = other.Typed.Client(), other.Typed.Client()
			k.ask(k.session(ann, "e"), "", "e", other)

			require.NoError(k, k.s.EnterKey(k.ctx, "b", anyone, keyGrant(n, "sealed")))
			for id, want := range map[string]auth.Status{"a": auth.StatusGranted, "b": auth.StatusGranted, "c": auth.StatusPending, "d": auth.StatusPending, "e": auth.StatusPending} {
				require.Equal(k, want, k.request(id).Status, id)
			}
			require.Len(k, k.outgoing(), 2)
			require.Equal(k, 2, count(k.audits(ann), "granted"))
			got, err := k.s.Grants(k.ctx, oauth.GrantQuery{Owner: ann, Issuer: n.Slot.Issuer, Resource: n.Slot.Resource, Client: n.Slot.Client})
			require.NoError(k, err)
			require.Len(k, got, 1)
			require.Equal(k, "sealed", string(got[0].Access))
			require.True(k, k.ask(k.session(ann, "f"), "", "f", n).Granted, "nobody is asked for what is there")
			again := keyNeed(ann, got[0].Version)
			require.False(k, k.ask(k.session(ann, "g"), "", "g", again).Granted, "what was refused does not count")
			require.NoError(k, k.s.EnterKey(k.ctx, "g", anyone, keyGrant(again, "newer")))
			require.Equal(k, auth.StatusGranted, k.request("g").Status)
		}},
		{"key/one entry of many counts", func(k *kit) {
			n := keyNeed(ann, 0)
			k.ask(k.session(ann, "a"), "", "a", n)
			second := k.handle()
			var wait sync.WaitGroup
			results := make(chan error, 16)
			for i := range 16 {
				wait.Go(func() {
					if i%2 == 0 {
						results <- k.s.EnterKey(k.ctx, "a", anyone, keyGrant(n, "sealed"))
					} else {
						results <- second.RefuseKey(k.ctx, "a", anyone, "a")
					}
				})
			}
			wait.Wait()
			close(results)
			good := 0
			for err := range results {
				if err == nil {
					good++
					continue
				}
				require.ErrorIs(k, err, oauth.ErrConflict)
			}
			require.Equal(k, 1, good)
			require.Len(k, k.outgoing(), 1)
			require.Equal(k, 1, count(k.audits(ann), "granted")+count(k.audits(ann), "denied"))
		}},
		{"key/nobody else's, none that waits for something else, and none too late", func(k *kit) {
			n := keyNeed(ann, 0)
			k.ask(k.session(ann, "a"), "", "a", n)
			_, login := k.waiting(ann, "s", "read")
			onlyBob := func(o agent.Owner) bool { return o == bob }
			require.ErrorIs(k, k.s.EnterKey(k.ctx, "a", onlyBob, keyGrant(n, "x")), oauth.ErrNotFound)
			require.ErrorIs(k, k.s.RefuseKey(k.ctx, "a", onlyBob, ""), oauth.ErrNotFound)
			require.ErrorIs(k, k.s.EnterKey(k.ctx, "unknown", anyone, keyGrant(n, "x")), oauth.ErrNotFound)
			require.ErrorIs(k, k.s.EnterKey(k.ctx, login, anyone, keyGrant(need(ann, "read"), "x")), oauth.ErrConflict)
			require.ErrorIs(k, k.s.RefuseKey(k.ctx, login, anyone, ""), oauth.ErrConflict)
			require.ErrorIs(k, k.s.EnterKey(k.ctx, "a", anyone, keyGrant(keyNeed(bob, 0), "x")), oauth.ErrConflict, "the grant of another slot")
			late := k.session(ann, "t")
			a, r := question(late, "", "late", n)
			r.Deadline = k.clock.now().Add(time.Minute)
			_, err := k.s.Ask(k.ctx, a, r, render(a))
			require.NoError(k, err)
			k.clock.advance(time.Hour)
			require.ErrorIs(k, k.s.EnterKey(k.ctx, "late", anyone, keyGrant(n, "x")), oauth.ErrConflict)
			require.Empty(k, k.outgoing())
			got, err := k.s.Grants(k.ctx, oauth.GrantQuery{Owner: ann, Resource: n.Slot.Resource})
			require.NoError(k, err)
			require.Empty(k, got)
			require.NoError(k, k.s.BeginFlow(k.ctx, oauth.Flow{StateHash: "h", Request: login, Owner: ann, Expires: k.clock.now().Add(time.Hour)}, 5))
		}},
		{"key/a refusal is about what was shown", func(k *kit) {
			n := keyNeed(ann, 0)
			for _, id := range []string{"a", "b", "c"} {
				k.ask(k.session(ann, id), "", id, n)
			}
			require.NoError(k, k.s.RefuseKey(k.ctx, "a", anyone, "b"))
			require.Equal(k, auth.StatusDenied, k.request("a").Status)
			require.Equal(k, auth.StatusDenied, k.request("b").Status)
			require.Equal(k, auth.StatusPending, k.request("c").Status)
			require.Len(k, k.outgoing(), 2)
			require.NoError(k, k.s.RefuseKey(k.ctx, "c", anyone, ""))
			require.Equal(k, auth.StatusDenied, k.request("c").Status)
		}},
	}
}
