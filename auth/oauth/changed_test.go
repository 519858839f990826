package oauth_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/internal/demo"
)

// changing is a world where ann is connected as alice, and has logged in as bob.
type changing struct {
	*world
	p       *demo.Provider
	want    auth.Want
	request string
	cookies func(string) string
	cb      oauth.Callback
	change  oauth.Change
	before  oauth.Grant
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	w, p := signedIn(t)
	c := &changing{world: w, p: p, want: idWant(p)}
	_, err := w.visitAs(c.want)
	require.NoError(t, err)
	c.before = w.store.allGrants()[0]
	p.SetFaults(func(f *demo.Faults) { f.AutoApprove = "bob" })
	c.start("more")
	out, err := w.service.Complete(t.Context(), only(ann), c.cb)
	require.NoError(t, err)
	require.NotNil(t, out.Change)
	c.change = *out.Change
	return c
}

// start begins a login of a request of its own, up to the callback.
func (c *changing) start(request string) {
	c.t.Helper()
	c.request = request
	more := c.want
	more.Auth.Scopes = append([]string{demo.ScopeRead}, more.Auth.Scopes...)
	c.ask(request, c.needOf(more))
	s, cookies := c.begin(request)
	c.cookies = cookies
	c.cb = visit(c.t, s.RedirectURL)
	c.cb.Cookies = cookies
}

func (c *changing) say(replace bool) (oauth.Result, error) {
	c.t.Helper()
	return c.service.Confirm(c.t.Context(), only(ann), oauth.Choice{Flow: c.change.Flow, Replaces: c.change.Replaces, Replace: replace, Cookies: c.cookies})
}

func (c *changing) connectedAs() []string {
	c.t.Helper()
	var out []string
	for _, g := range c.store.allGrants() {
		out = append(out, g.Account.Label)
	}
	return out
}

func (c *changing) status() auth.Status {
	c.t.Helper()
	r, err := c.store.Request(c.t.Context(), c.request, only(ann))
	require.NoError(c.t, err)
	return r.Status
}

func TestAnotherAccountIsConfirmed(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	require.Equal(t, "alice@ledger.example", c.change.From.Label)
	require.Equal(t, "bob@ledger.example", c.change.To.Label)
	require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs())
	require.Equal(t, auth.StatusPending, c.status())

	// A reload asks again; it exchanges nothing.
	requests := c.p.Counts()
	out, err := c.service.Complete(t.Context(), only(ann), c.cb)
	require.NoError(t, err)
	require.Equal(t, c.change, *out.Change)
	require.Equal(t, requests, c.p.Counts())

	out, err = c.say(true)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Nil(t, out.Change)
	require.Equal(t, []string{"bob@ledger.example"}, c.connectedAs())
	token, err := c.broker().Token(t.Context(), c.want)
	require.NoError(t, err, "what was parked opens")
	require.Contains(t, c.p.Secrets().AccessTokens, token.Access.Reveal())

	for _, again := range []bool{true, false} {
		out, err = c.say(again)
		require.NoError(t, err)
		require.Equal(t, auth.StatusGranted, out.Outcome)
		require.Equal(t, []string{"bob@ledger.example"}, c.connectedAs())
	}
}

func TestAnotherAccountIsDeclined(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	revoked := c.p.Counts().Revocations
	out, err := c.say(false)
	require.NoError(t, err)
	require.Equal(t, auth.StatusPending, out.Outcome)
	require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs())
	require.Greater(t, c.p.Counts().Revocations, revoked, "nobody keeps the tokens, and nobody can use them")
	_, err = c.say(true)
	require.ErrorIs(t, err, oauth.ErrSpentFlow)
	_, err = c.service.Complete(t.Context(), only(ann), c.cb)
	require.ErrorIs(t, err, oauth.ErrSpentFlow)

	// The same link works, with the account that was connected.
	c.p.SetFaults(func(f *demo.Faults) { f.AutoApprove = "alice" })
	s, cookies := c.begin(c.request)
	cb := visit(t, s.RedirectURL)
	cb.Cookies = cookies
	out, err = c.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Nil(t, out.Change)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

// Whoever is not the person, or in another browser, decides nothing; nor does anybody after the flow's end.
func TestAnotherAccountIsForItsPersonToConfirm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		access auth.Access
		change func(*oauth.Choice)
		pass   time.Duration
		err    error
	}{
		"another person":  {access: only(agent.Owner{App: ann.App, User: "eve"}), err: oauth.ErrWrongUser},
		"another app's":   {access: only(agent.Owner{App: "other", User: ann.User}), err: oauth.ErrWrongUser},
		"another browser": {change: func(c *oauth.Choice) { c.Cookies = func(string) string { return "x" } }, err: oauth.ErrWrongBrowser},
		"no cookie":       {change: func(c *oauth.Choice) { c.Cookies = nil }, err: oauth.ErrWrongBrowser},
		"no such flow":    {change: func(c *oauth.Choice) { c.Flow = strings.Repeat("0", 64) }, err: oauth.ErrUnknownState},
		"no flow":         {change: func(c *oauth.Choice) { c.Flow = "" }, err: oauth.ErrUnknownState},
		"too late":        {pass: 16 * time.Minute, err: oauth.ErrExpiredFlow},
	} {
		for _, replace := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := newChanging(t)
				choice := oauth.Choice{Flow: c.change.Flow, Replaces: c.change.Replaces, Replace: replace, Cookies: c.cookies}
				if tc.change != nil {
					tc.change(&choice)
				}
				access := tc.access
				if access == nil {
					access = only(ann)
				}
				c.pass(tc.pass)
				_, err := c.service.Confirm(t.Context(), access, choice)
				require.ErrorIs(t, err, tc.err)
				require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs())
				require.Equal(t, auth.StatusPending, c.status())
				if tc.pass == 0 {
					out, err := c.say(true)
					require.NoError(t, err)
					require.Equal(t, auth.StatusGranted, out.Outcome)
				}
			})
		}
	}
}

// Consent is to replace the account that the page named, and no other that came in between.
func TestAnotherAccountReplacesWhatWasShown(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	first, firstCookies := c.change, c.cookies
	_, err := c.service.Disconnect(t.Context(), ann, c.before.ID, false)
	require.NoError(t, err)
	c.p.SetFaults(func(f *demo.Faults) { f.AutoApprove = "alice" })
	c.start("third") // answers both requests, unless it is another scope's
	_, err = c.service.Complete(t.Context(), only(ann), c.cb)
	require.NoError(t, err)
	c.change, c.cookies = first, firstCookies
	out, err := c.say(true)
	require.NoError(t, err)
	require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs(), "%v", out.Outcome)

	// Without the grant before, there is nothing to ask.
	c = newChanging(t)
	_, err = c.service.Disconnect(t.Context(), ann, c.before.ID, false)
	require.NoError(t, err)
	out, err = c.say(true)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Equal(t, []string{"bob@ledger.example"}, c.connectedAs())

	c = newChanging(t)
	c.change.Replaces = "another"
	out, err = c.say(true)
	require.NoError(t, err)
	require.NotNil(t, out.Change, "the page is shown once more")
	require.Equal(t, c.before.ID, out.Change.Replaces)
	require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs())
}

// Nobody confirms: the tokens go when the flow does, once, whoever sweeps.
func TestAnotherAccountThatNobodyConfirms(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	revoked := c.p.Counts().Revocations
	_, err := c.service.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, revoked, c.p.Counts().Revocations, "not before its time")
	c.pass(16 * time.Minute)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { _, _ = c.service.Recover(context.WithoutCancel(t.Context())) })
	}
	group.Wait()
	f, err := c.store.Flow(t.Context(), c.change.Flow)
	require.NoError(t, err)
	require.Equal(t, oauth.FlowSpent, f.Status)
	require.Empty(t, f.Code)
	require.Equal(t, revoked+2, c.p.Counts().Revocations)
	require.Equal(t, auth.StatusPending, c.status())
}

// A process dies at any step: nothing is replaced unasked, and nothing hangs.
func TestCrashAroundAnotherAccount(t *testing.T) {
	t.Parallel()
	for _, point := range []string{oauth.FaultExchanged, oauth.FaultParked, oauth.FaultCommitted} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, p := signedIn(t)
			c := &changing{world: w, p: p, want: idWant(p)}
			_, err := w.visitAs(c.want)
			require.NoError(t, err)
			p.SetFaults(func(f *demo.Faults) { f.AutoApprove = "bob" })
			c.start("more")
			die := func(at string) {
				if at == point { // the process is killed
					panic(crash{})
				}
			}
			c.setFault(die)
			if point == oauth.FaultCommitted {
				out, err := w.service.Complete(t.Context(), only(ann), c.cb)
				require.NoError(t, err)
				c.change = *out.Change
				dies(t, func() { _, _ = c.say(true) })
				require.Equal(t, auth.StatusGranted, c.status())
				require.Equal(t, []string{"bob@ledger.example"}, c.connectedAs())
				return
			}
			dies(t, func() { _, _ = w.service.Complete(t.Context(), only(ann), c.cb) })
			c.setFault(nil)
			c.pass(time.Minute)
			_, err = w.newService().Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, auth.StatusPending, c.status())
			require.Equal(t, []string{"alice@ledger.example"}, c.connectedAs())
			out, err := w.service.Complete(t.Context(), only(ann), c.cb)
			if point == oauth.FaultParked {
				require.NoError(t, err)
				require.NotNil(t, out.Change)
			} else {
				require.ErrorIs(t, err, oauth.ErrSpentFlow)
			}
		})
	}
}

// The rotation of keys opens what is parked as what it is.
func TestParkedFlowsAreSealedAsTheySay(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	f, err := c.store.Flow(t.Context(), c.change.Flow)
	require.NoError(t, err)
	opened := 0
	for _, value := range f.Sealed() {
		if len(value.Cipher) > 0 {
			_, err := c.vault.Open(value.Cipher, value.AD)
			require.NoError(t, err, value.Column)
			opened++
		}
	}
	require.NotZero(t, opened)
}
