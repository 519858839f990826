package store_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// movable is a need whose provider the server names.
func movable(o agent.Owner, issuer string, scopes ...string) auth.Need {
	n := need(o, scopes...)
	n.Slot.Issuer, n.Movable = issuer, true
	n.Provider = auth.Provider{Issuer: issuer, AuthorizationEndpoint: issuer + "/auth", TokenEndpoint: issuer + "/token", Discovered: true}
	return n
}

func grantOf(issuer string, scopes ...string) oauth.Grant {
	g := grant(scopes...)
	g.Provider = auth.Provider{Issuer: issuer, TokenEndpoint: issuer + "/token", Discovered: true}
	return g
}

func repinCases() []testCase {
	const oldIssuer, newIssuer = "https://old.example", "https://new.example"
	from, to := movable(ann, oldIssuer).Slot, movable(ann, newIssuer)
	return []testCase{
		{"repin/moves what waits in the slot, with its link, and nobody else's", func(k *kit) {
			for i := range 3 {
				row := k.session(ann, fmt.Sprint("s", i))
				n := movable(ann, oldIssuer, "read")
				n.Refused, n.Client.Params = 7, map[string]string{"prompt": "login"}
				k.ask(row, "", fmt.Sprint("r", i), n)
			}
			k.ask(k.session(ann, "fixed"), "", "fixed", func() auth.Need {
				n := movable(ann, oldIssuer, "read")
				n.Movable = false // its definition names the issuer
				return n
			}())
			k.ask(k.session(bob, "b"), "", "bob", movable(bob, oldIssuer, "read"))
			link, state := k.request("r0").Link(public), k.begun("r0")

			n, err := k.s.Repin(k.ctx, from, to)
			require.NoError(k, err)
			require.Equal(k, 3, n)
			for i := range 3 {
				r := k.request(fmt.Sprint("r", i))
				require.Equal(k, to.Slot, r.Need.Slot)
				require.Equal(k, to.Provider, r.Need.Provider)
				require.Zero(k, r.Need.Refused, "versions of the old slot mean nothing")
				require.Equal(k, map[string]string{"prompt": "login"}, r.Need.Client.Params)
				require.Equal(k, link, r.Link(public))
			}
			for _, id := range []string{"fixed", "bob"} {
				require.Equal(k, oldIssuer, k.request(id).Need.Slot.Issuer, id)
			}
			require.Equal(k, 3, count(k.audits(ann), "moved"))
			issuer, err := k.s.Callback(k.ctx, oauth.CallbackDigest(newIssuer))
			require.NoError(k, err)
			require.Equal(k, newIssuer, issuer)

			// A login at the old provider that was under way comes to nothing.
			_, err = k.s.StartExchange(k.ctx, state, []byte("sealed"), "", time.Minute)
			require.ErrorIs(k, err, oauth.ErrConflict)
			_, err = k.s.Commit(k.ctx, state, grantOf(oldIssuer, "read"))
			require.ErrorIs(k, err, oauth.ErrConflict)

			woken, err := k.s.Commit(k.ctx, k.exchanging("r0"), grantOf(newIssuer, "read"))
			require.NoError(k, err)
			require.Len(k, woken, 3)
			require.Len(k, k.outgoing(), 3)
		}},
		{"repin/not what another server or other rules ask for", func(k *kit) {
			k.ask(k.session(ann, "s"), "", "r", movable(ann, oldIssuer, "read"))
			for id, change := range map[string]func(*auth.Need){
				"server":  func(n *auth.Need) { n.Server = "https://mcp.example/other" },
				"relaxed": func(n *auth.Need) { n.Relaxed = []string{"allow_missing_pkce"} },
			} {
				n := movable(ann, oldIssuer, "read")
				change(&n)
				k.ask(k.session(ann, id), "", id, n)
			}
			moved, err := k.s.Repin(k.ctx, from, to)
			require.NoError(k, err)
			require.Equal(k, 1, moved)
			require.Equal(k, newIssuer, k.request("r").Need.Slot.Issuer)
			for _, id := range []string{"server", "relaxed"} {
				require.Equal(k, oldIssuer, k.request(id).Need.Slot.Issuer, id)
				require.Equal(k, []string{id}, k.behind(id))
			}
		}},
		{"repin/a login that found the old provider does not begin", func(k *kit) {
			k.ask(k.session(ann, "s"), "", "r", movable(ann, oldIssuer, "read"))
			f := k.flow("r")
			f.Provider = k.request("r").Need.Provider
			_, err := k.s.Repin(k.ctx, from, to)
			require.NoError(k, err)
			require.ErrorIs(k, k.s.BeginFlow(k.ctx, f, 8), oauth.ErrConflict)
			f.Provider = to.Provider
			require.NoError(k, k.s.BeginFlow(k.ctx, f, 8))
		}},
		{"repin/once", func(k *kit) {
			k.ask(k.session(ann, "s"), "", "r", movable(ann, oldIssuer, "read"))
			second := k.handle()
			var wait sync.WaitGroup
			moved := make(chan int, 8)
			for i := range 8 {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					if n, err := h.Repin(k.ctx, from, to); err == nil {
						moved <- n
					}
				})
			}
			wait.Wait()
			require.Len(k, moved, 1)
			require.Equal(k, 1, count(k.audits(ann), "moved"))
			_, err := k.s.Repin(k.ctx, to.Slot, to)
			require.ErrorIs(k, err, oauth.ErrConflict)
			_, err = k.s.Repin(k.ctx, movable(bob, oldIssuer).Slot, to)
			require.ErrorIs(k, err, oauth.ErrConflict, "to another person")
		}},
		{"repin/not while a login is being completed", func(k *kit) {
			k.ask(k.session(ann, "s"), "", "r", movable(ann, oldIssuer, "read"))
			state := k.exchanging("r")
			_, err := k.s.Repin(k.ctx, from, to)
			require.ErrorIs(k, err, oauth.ErrConflict)
			_, err = k.s.Commit(k.ctx, state, grantOf(oldIssuer, "read"))
			require.NoError(k, err)
		}},
		{"repin/to where the credential is already", func(k *kit) {
			k.ask(k.session(ann, "s"), "", "done", movable(ann, newIssuer, "read", "write"))
			_, err := k.s.Commit(k.ctx, k.exchanging("done"), grantOf(newIssuer, "read", "write"))
			require.NoError(k, err)
			k.outgoing()
			k.ask(k.session(ann, "t"), "", "r", movable(ann, oldIssuer, "read"))
			k.ask(k.session(ann, "u"), "", "more", movable(ann, oldIssuer, "read", "admin"))
			n, err := k.s.Repin(k.ctx, from, to)
			require.NoError(k, err)
			require.Equal(k, 2, n)
			require.Equal(k, auth.StatusGranted, k.request("r").Status)
			require.Equal(k, auth.StatusPending, k.request("more").Status)
			require.Contains(k, k.outgoing(), "r")
		}},
	}
}
