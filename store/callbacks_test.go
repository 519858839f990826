package store_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

func callbackCases() []testCase {
	at := func(issuer, client string) auth.Need {
		n := need(ann, "read")
		n.Slot.Issuer, n.Slot.Client, n.Provider.Issuer, n.Provider.Discovered = issuer, client, issuer, true
		return n
	}
	paths := func(issuers ...string) (out []string) {
		for _, issuer := range issuers {
			out = append(out, oauth.CallbackDigest(issuer))
		}
		return out
	}
	return []testCase{
		{"callbacks/those of the metadata document, last used first", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2", "c3", "c4")
			for i, n := range []auth.Need{
				at("https://a.example", auth.ClientMetadata), at("https://b.example/", auth.ClientMetadata), at("https://c.example", auth.ClientDynamic),
			} {
				id := string(rune('1' + i))
				k.ask(row, "c"+id, "req"+id, n, "m")
				k.clock.advance(time.Second)
			}
			list := func(limit int) []string {
				got, err := k.s.Callbacks(k.ctx, limit)
				require.NoError(k, err)
				return got
			}
			require.Equal(k, paths("https://b.example", "https://a.example"), list(10))
			require.Equal(k, paths("https://b.example"), list(1))
			// The person comes back to the older request, when others have pushed its path out of the document.
			k.begun("req1")
			require.Equal(k, paths("https://a.example"), list(1))
			// A client in a definition and the document may have one path.
			k.clock.advance(time.Second)
			k.ask(row, "c4", "req4", at("https://a.example", auth.ClientPreregistered+"x"), "m")
			require.Equal(k, paths("https://a.example", "https://b.example"), list(10))
			issuer, err := k.s.Callback(k.ctx, oauth.CallbackDigest("https://b.example"))
			require.NoError(k, err)
			require.Equal(k, "https://b.example/", issuer)
		}},
		{"keep/a grant without a login replaces the one before", func(k *kit) {
			g := grant("read")
			g.Slot, g.Refresh, g.Life = slot(ann), nil, time.Hour
			first, err := k.s.Keep(k.ctx, g)
			require.NoError(k, err)
			require.EqualValues(k, 1, first.Version)
			require.Equal(k, time.Hour, first.Left())
			_, ours, err := k.s.Lease(k.ctx, ann, first.ID, first.Version, time.Minute)
			require.NoError(k, err)
			require.True(k, ours)
			second, err := k.s.Keep(k.ctx, g)
			require.NoError(k, err)
			require.EqualValues(k, 2, second.Version)
			require.NotEqual(k, first.ID, second.ID)
			require.Len(k, k.grants(ann), 1)
			_, ours, err = k.s.Lease(k.ctx, ann, second.ID, second.Version, time.Minute)
			require.NoError(k, err)
			require.True(k, ours, "the lease has ended with the grant that it was for")
			_, _, err = k.s.Lease(k.ctx, ann, first.ID, first.Version, time.Minute)
			require.ErrorIs(k, err, oauth.ErrNotFound)
			require.Contains(k, k.audits(ann), "granted")
		}},
		{"callbacks/the logins of a request, newest first, answered or not", func(k *kit) {
			_, request := k.waiting(ann, "s", "read")
			_, other := k.waiting(ann, "t", "write")
			first := k.begun(request)
			k.clock.advance(time.Hour)
			k.begun(other)
			second := k.exchanging(request)
			found, err := k.s.Flows(k.ctx, request, 10)
			require.NoError(k, err)
			require.Len(k, found, 2)
			require.Equal(k, []string{second, first}, []string{found[0].StateHash, found[1].StateHash})
			require.Equal(k, []oauth.FlowStatus{oauth.FlowExchanging, oauth.FlowLive}, []oauth.FlowStatus{found[0].Status, found[1].Status})
			require.Equal(k, "client", found[1].Client.ID)
			found, err = k.s.Flows(k.ctx, request, 1)
			require.NoError(k, err)
			require.Len(k, found, 1)
		}},
		{"callbacks/a query without client finds grants of every source", func(k *kit) {
			for i, client := range []string{auth.ClientDynamic, auth.ClientMetadata} {
				row := k.session(ann, client)
				k.calls(row, theRun, "m-"+client, nil, "call-"+client)
				k.ask(row, "call-"+client, "req-"+client, at("https://id.example", client), "m-"+client)
				k.login("req-"+client, "read")
				k.clock.advance(time.Second)
				found, err := k.s.Grants(k.ctx, oauth.GrantQuery{Owner: ann, Resource: slot(ann).Resource})
				require.NoError(k, err)
				require.Len(k, found, i+1)
				require.Equal(k, client, found[0].Slot.Client, "newest first")
				found, err = k.s.Grants(k.ctx, oauth.GrantQuery{Owner: ann, Resource: slot(ann).Resource, Client: client})
				require.NoError(k, err)
				require.Len(k, found, 1)
			}
		}},
	}
}
