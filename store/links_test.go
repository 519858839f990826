package store_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

const public = "https://tarry.example"

func linkCases() []testCase {
	return []testCase{
		{"link/requests of a person for one login share it", func(k *kit) {
			_, first := k.waiting(ann, "s0", "read", "write")
			link := k.request(first).Link(public)
			var rendered []string
			for i := range 10 {
				row := k.session(ann, fmt.Sprint("t", i))
				a, r := question(row, "", fmt.Sprint("r", i), need(ann, "read"))
				asked, err := k.s.Ask(k.ctx, a, r, func(r auth.Request) (session.NewEvent, error) {
					rendered = append(rendered, r.Link(public)) // what the event says
					return a.Events[0], nil
				})
				require.NoError(k, err)
				require.Equal(k, r.ID, asked.Request.ID, "each has a request of its own")
				require.Equal(k, link, asked.Request.Link(public))
				require.Equal(k, link, k.request(r.ID).Link(public))
			}
			require.Equal(k, slices.Repeat([]string{link}, 10), rendered)
			require.Equal(k, []string{first, "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"}, k.behind(first))
			_, person := k.waiting(bob, "s0", "read")
			require.NotEqual(k, link, k.request(person).Link(public))

			woken := k.login(first, "read", "write")
			require.Len(k, woken, 11)
			require.Len(k, k.outgoing(), 11)
			require.Equal(k, auth.StatusPending, k.request(person).Status)
		}},
		{"link/of 50 that ask at once one leads", func(k *kit) {
			const runs = 50
			second := k.handle()
			rows := make([]session.Session, runs)
			for i := range rows {
				rows[i] = k.session(ann, fmt.Sprint("s", i))
			}
			var wait sync.WaitGroup
			for i, row := range rows {
				h := k.s
				if i%2 == 1 {
					h = second
				}
				wait.Go(func() {
					a, r := question(row, "", fmt.Sprint("r", i), need(ann, "read"))
					_, err := h.Ask(k.ctx, a, r, render(a))
					if err != nil {
						k.Error(err)
					}
				})
			}
			wait.Wait()
			links := map[string]int{}
			for i := range rows {
				links[k.request(fmt.Sprint("r", i)).Link(public)]++
			}
			require.Len(k, links, 1)
			require.Len(k, k.login(k.behind("r0")[0], "read"), runs)
		}},
		{"link/a wider need asks for the union, and its login wakes the narrower", func(k *kit) {
			_, narrow := k.waiting(ann, "s", "read", "list")
			row, wide := k.waiting(ann, "t", "read", "write")
			r := k.request(wide)
			require.Equal(k, []string{"list", "read", "write"}, r.Need.Scopes)
			require.Equal(k, []string{"read", "write"}, r.Need.Own())
			require.NotEqual(k, k.request(narrow).Link(public), r.Link(public))
			_, third := k.waiting(ann, "u", "write")
			require.Equal(k, wide, k.request(third).Leader, "the older one does not cover it")

			// A denial sticks to what the run itself wanted.
			state := k.exchanging(wide)
			require.NoError(k, k.s.Deny(k.ctx, state, "access_denied"))
			require.True(k, k.ask(row, "", "again", need(ann, "read", "write")).Denied)
			require.Equal(k, auth.StatusPending, k.request(narrow).Status)

			_, wide = k.waiting(ann, "v", "read", "write")
			k.login(wide, "read", "write", "list")
			require.Equal(k, auth.StatusGranted, k.request(narrow).Status)
		}},
		{"link/a narrower login wakes whose own need it meets", func(k *kit) {
			_, first := k.waiting(ann, "s", "list")
			_, wide := k.waiting(ann, "t", "read")
			require.Equal(k, []string{"list", "read"}, k.request(wide).Need.Scopes)
			k.login(first, "list", "read")
			require.Equal(k, auth.StatusGranted, k.request(wide).Status)
		}},
		{"link/nobody asks for more than its definition allows", func(k *kit) {
			k.waiting(ann, "s", "admin")
			limited := need(ann, "read")
			limited.Limit = []string{"read", "write"}
			r := k.ask(k.session(ann, "t"), "", "r", limited).Request
			require.Equal(k, []string{"read"}, r.Need.Scopes)
			require.Equal(k, "r", r.Leader)
		}},
		{"link/logins that differ in more than scopes are not shared", func(k *kit) {
			k.waiting(ann, "s", "read")
			for name, change := range map[string]func(*auth.Need){
				"client": func(n *auth.Need) { n.Client.Params = map[string]string{"prompt": "consent"} },
				"token":  func(n *auth.Need) { n.Provider.TokenEndpoint = "https://id.example/v2" },
				"page":   func(n *auth.Need) { n.Provider.AuthorizationEndpoint = "https://id.example/v2" },
				"type":   func(n *auth.Need) { n.Type = "openIdConnect" },
				"slot":   func(n *auth.Need) { n.Slot.Domain = "own" },
			} {
				n := need(ann, "read")
				change(&n)
				r := k.ask(k.session(ann, "t-"+name), "", "r-"+name, n).Request
				require.Equal(k, r.ID, r.Leader, name)
				require.Nil(k, r.Need.Wanted, name)
			}
			n := need(ann, "read")
			n.Type = auth.TypeInput
			for i := range 2 {
				id := fmt.Sprint("input", i)
				require.Equal(k, id, k.ask(k.session(ann, id), "", id, n).Request.Leader, "what a server wants for one call is no login")
			}
		}},
		{"link/works on when the request that leads has ended", func(k *kit) {
			row, first := k.waiting(ann, "s", "read")
			_, next := k.waiting(ann, "t", "read")
			link := k.request(first).Link(public)
			_, err := k.s.CloseRequest(k.ctx, row, first)
			require.NoError(k, err)
			require.Equal(k, []string{next}, k.behind(first))
			require.Equal(k, []string{next}, k.behind(next))
			_, later := k.waiting(ann, "u", "read")
			require.Equal(k, link, k.request(later).Link(public), "and whoever comes later is behind it too")
			_, err = k.s.Behind(k.ctx, first, func(o agent.Owner) bool { return o == bob })
			require.ErrorIs(k, err, oauth.ErrNotFound)
			k.login(next, "read")
			require.Equal(k, []string{first}, k.behind(first), "none is left: the link says how it ended")
			require.Equal(k, []string{later}, k.behind(later))
		}},
		{"link/a login under way is not lost with the request that leads", func(k *kit) {
			for i, state := range []func(string) string{k.begun, k.exchanging} {
				row, first := k.waiting(ann, fmt.Sprint("s", i), "read", "write")
				_, next := k.waiting(ann, fmt.Sprint("t", i), "read")
				hash := state(first)
				_, late := k.waiting(ann, fmt.Sprint("u", i), "read")
				k.finish(row)
				require.Equal(k, auth.StatusCancelled, k.request(first).Status)
				f, err := k.s.Flow(k.ctx, hash)
				require.NoError(k, err)
				require.Equal(k, next, f.Request)
				require.NotEmpty(k, f.Verifier)
				if f.Status == oauth.FlowLive {
					_, err = k.s.StartExchange(k.ctx, hash, []byte("sealed code"), "h", time.Minute)
					require.NoError(k, err)
				}
				require.Equal(k, auth.StatusExchanging, k.request(next).Status)
				_, err = k.s.Commit(k.ctx, hash, grant("read", "write"))
				require.NoError(k, err)
				for _, id := range []string{next, late} {
					require.Equal(k, auth.StatusGranted, k.request(id).Status)
				}
				require.Equal(k, auth.StatusCancelled, k.request(first).Status)
				require.NoError(k, k.s.Drop(k.ctx, ann, k.grants(ann)[0].ID, k.grants(ann)[0].Version, "test"))
			}
		}},
		{"link/a denial ends what the page showed, and nothing that came later", func(k *kit) {
			_, first := k.waiting(ann, "s", "read")
			_, shown := k.waiting(ann, "t", "read")
			state := k.begun(first)
			_, later := k.waiting(ann, "u", "read")
			_, err := k.s.StartExchange(k.ctx, state, []byte("sealed"), "", time.Minute)
			require.NoError(k, err)
			require.NoError(k, k.s.Deny(k.ctx, state, "access_denied"))
			require.Equal(k, auth.StatusDenied, k.request(first).Status)
			require.Equal(k, auth.StatusDenied, k.request(shown).Status)
			require.Equal(k, auth.StatusPending, k.request(later).Status)
			out := k.outgoing()
			require.Len(k, out, 2)
			require.Contains(k, out, shown)
			require.Equal(k, []string{later}, k.behind(first), "the link asks for it")
			k.login(later, "read")
		}},
		{"link/a denial spares what was asked between the page and its form", func(k *kit) {
			for i, shown := range []func(first, seen string) string{
				func(_, seen string) string { return seen },
				func(string, string) string { return "" },
				func(string, string) string { return "unknown" },
				func(string, string) string { _, other := k.waiting(bob, "other", "read"); return other },
			} {
				_, first := k.waiting(ann, fmt.Sprint("s", i), "read")
				_, seen := k.waiting(ann, fmt.Sprint("t", i), "read")
				page := shown(first, seen)
				_, between := k.waiting(ann, fmt.Sprint("u", i), "read")
				f := k.flow(first)
				f.Shown = page
				require.NoError(k, k.s.BeginFlow(k.ctx, f, 8))
				_, after := k.waiting(ann, fmt.Sprint("v", i), "read")
				_, err := k.s.StartExchange(k.ctx, f.StateHash, []byte("sealed"), "", time.Minute)
				require.NoError(k, err)
				require.NoError(k, k.s.Deny(k.ctx, f.StateHash, "access_denied"))
				require.Equal(k, auth.StatusDenied, k.request(first).Status)
				require.Equal(k, auth.StatusDenied, k.request(seen).Status)
				require.Equal(k, auth.StatusPending, k.request(after).Status)
				if page == seen {
					require.Equal(k, auth.StatusPending, k.request(between).Status, "the page did not show it")
				} else {
					require.Equal(k, auth.StatusDenied, k.request(between).Status, "the page did not say")
				}
				k.login(after, "read")
				g := k.grants(ann)[0]
				require.NoError(k, k.s.Drop(k.ctx, ann, g.ID, g.Version, "test"))
			}
		}},
		{"link/a denial of what was cancelled meanwhile denies nobody", func(k *kit) {
			row, first := k.waiting(ann, "s", "read")
			state := k.exchanging(first)
			_, later := k.waiting(ann, "t", "read")
			k.finish(row)
			require.NoError(k, k.s.Deny(k.ctx, state, "access_denied"))
			require.Equal(k, auth.StatusPending, k.request(later).Status)
			require.Empty(k, k.outgoing())
			k.login(later, "read")
		}},
	}
}

func (k *kit) behind(id string) []string {
	k.Helper()
	found, err := k.s.Behind(k.ctx, id, anyone)
	require.NoError(k, err)
	out := []string{}
	for _, r := range found {
		out = append(out, r.ID)
	}
	return out
}

// finish ends the invocation of a session, as a cancelled run does.
func (k *kit) finish(row session.Session) {
	k.Helper()
	_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: inv, Status: "cancelled", Append: session.Append{Owner: row.Owner, Session: row.ID}})
	require.NoError(k, err)
}
