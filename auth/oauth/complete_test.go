package oauth_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, want := range map[string]auth.Want{"discovered": w.mcpWant(), "explicit": w.explicitWant()} {
		token := w.login(want)
		require.True(t, strings.HasPrefix(token.Access.Reveal(), "access-"), name)
		require.Equal(t, []string{"read"}, token.Scopes)
		require.Equal(t, w.now().Add(time.Hour), token.Expires)
	}
	for _, form := range w.provider.tokenRequests() {
		require.Equal(t, w.provider.mcp(), form.Get("resource"))
	}
	require.Equal(t, 2, w.wakes())
	require.Equal(t, oauth.Use{Session: "s", Agent: "a", Tool: "tool"}, w.store.uses[0])

	registered := w.provider.register[0]
	require.Equal(t, "native", registered["application_type"])
	require.Equal(t, []any{"authorization_code", "refresh_token"}, registered["grant_types"])
	require.Equal(t, []any{"http://localhost:8080" + oauth.CallbackPath(w.provider.URL)}, registered["redirect_uris"])
}

func TestRejectedCallbacks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(w *world, cb *oauth.Callback)
		access auth.Access
		err    error
		code   string // of a ProviderError
		// then is the request's state, empty for pending; the genuine callback must still work if usable.
		then   auth.Status
		usable bool
		sent   int // token requests
		audit  string
		logs   string
	}{
		"unknown state":             {change: func(_ *world, cb *oauth.Callback) { cb.State = "nobody" }, err: oauth.ErrUnknownState, usable: true},
		"no state":                  {change: func(_ *world, cb *oauth.Callback) { cb.State = "" }, err: oauth.ErrUnknownState, usable: true},
		"huge state":                {change: func(_ *world, cb *oauth.Callback) { cb.State = strings.Repeat("x", 1<<20) }, err: oauth.ErrUnknownState, usable: true},
		"no cookie":                 {change: func(_ *world, cb *oauth.Callback) { cb.Cookies = nil }, err: oauth.ErrWrongBrowser, audit: "refused browser"},
		"wrong cookie":              {change: func(_ *world, cb *oauth.Callback) { cb.Cookies = func(string) string { return "x" } }, err: oauth.ErrWrongBrowser, audit: "refused browser"},
		"wrong user":                {change: func(*world, *oauth.Callback) {}, access: only(agent.Owner{App: "app", User: "bob"}), err: oauth.ErrWrongUser, audit: "refused user"},
		"same user, other app":      {change: func(*world, *oauth.Callback) {}, access: only(agent.Owner{App: "b", User: "ann"}), err: oauth.ErrWrongUser, audit: "refused user"},
		"path of another issuer":    {change: func(_ *world, cb *oauth.Callback) { cb.Digest = oauth.CallbackDigest("https://other") }, err: oauth.ErrIssuer, audit: "refused path"},
		"expired":                   {change: func(w *world, _ *oauth.Callback) { w.pass(time.Hour) }, err: oauth.ErrExpiredFlow, audit: "refused expired"},
		"neither code nor error":    {change: func(_ *world, cb *oauth.Callback) { cb.Code = "" }, err: oauth.ErrBadCallback, usable: true, audit: "refused incomplete"},
		"huge code":                 {change: func(_ *world, cb *oauth.Callback) { cb.Code = strings.Repeat("x", 1<<20) }, err: oauth.ErrBadCallback, usable: true, audit: "refused incomplete"},
		"wrong iss":                 {change: func(_ *world, cb *oauth.Callback) { cb.Iss = "https://other" }, err: oauth.ErrIssuer, audit: "reopened issuer"},
		"iss with a slash":          {change: func(_ *world, cb *oauth.Callback) { cb.Iss += "/" }, err: oauth.ErrIssuer, audit: "reopened issuer"},
		"iss advertised and absent": {change: func(_ *world, cb *oauth.Callback) { cb.Iss, cb.IssPresent = "", false }, err: oauth.ErrIssuer, audit: "reopened issuer"},
		"wrong iss with denial":     {change: func(_ *world, cb *oauth.Callback) { cb.Iss, cb.Error, cb.Code = "https://other", "access_denied", "" }, err: oauth.ErrIssuer, audit: "reopened issuer"},
		"denied":                    {change: func(_ *world, cb *oauth.Callback) { cb.Error, cb.Code = "access_denied", "" }, then: auth.StatusDenied},
		"denied, with a code":       {change: func(_ *world, cb *oauth.Callback) { cb.Error = "access_denied" }, then: auth.StatusDenied},
		"provider error":            {change: func(_ *world, cb *oauth.Callback) { cb.Error, cb.Code = "temporarily_unavailable", "" }, code: "temporarily_unavailable"},
		"provider rejects resource": {change: func(_ *world, cb *oauth.Callback) { cb.Error, cb.Code = "invalid_target", "" }, err: oauth.ErrResourceRefused, audit: "reopened provider: invalid_target", logs: "write omit_resource: true under tarry in the definition (resource on 127.0.0.1"},
		"provider rejects scopes":   {change: func(_ *world, cb *oauth.Callback) { cb.Error, cb.Code = "invalid_scope", "" }, err: oauth.ErrScopeRefused, audit: "reopened provider: invalid_scope", logs: "limit them with max_scopes under tarry in the definition (read)"},
		"resource is rejected late": {change: func(w *world, _ *oauth.Callback) { w.provider.set(func(p *provider) { p.noResource = true }) }, err: oauth.ErrResourceRefused, sent: 1, audit: "reopened exchange: invalid_target"},
		"script as error":           {change: func(_ *world, cb *oauth.Callback) { cb.Error, cb.Code = "<script>alert(1)</script>", "" }, code: "unrecognized"},
		"unknown code":              {change: func(_ *world, cb *oauth.Callback) { cb.Code = "made-up" }, code: "invalid_grant", sent: 1, audit: "reopened exchange: invalid_grant"},
		"provider down": {change: func(w *world, _ *oauth.Callback) {
			w.provider.set(func(p *provider) {
				p.raw = func(url.Values) (int, string, string) { return 503, "text/html", "<html>" }
			})
		}, err: auth.ErrUnavailable, sent: 1, audit: "reopened exchange: unavailable"},
		"error with HTTP 200": {change: func(w *world, _ *oauth.Callback) {
			w.provider.set(func(p *provider) {
				p.raw = func(url.Values) (int, string, string) {
					return 200, "application/json", `{"error":"bad_verification_code"}`
				}
			})
		}, code: "invalid_grant", sent: 1},
		"token that is no bearer": {change: func(w *world, _ *oauth.Callback) {
			w.provider.set(func(p *provider) { p.answer = func(_ url.Values, f map[string]any) { f["token_type"] = "DPoP" } })
		}, err: auth.ErrMisconfigured, sent: 1},
		"cancelled meanwhile": {change: func(w *world, _ *oauth.Callback) { w.store.setStatus("R", auth.StatusCancelled) }, then: auth.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(w.mcpWant()))
			genuine := w.callback("R")
			cb := genuine
			tc.change(w, &cb)
			access := tc.access
			if access == nil {
				access = only(ann)
			}
			out, err := w.service.Complete(t.Context(), access, cb)
			switch {
			case tc.code != "":
				var p *oauth.ProviderError
				require.ErrorAs(t, err, &p)
				require.Equal(t, tc.code, p.Code)
			case tc.err != nil:
				require.ErrorIs(t, err, tc.err)
			default:
				require.NoError(t, err)
				require.Equal(t, tc.then, out.Outcome)
			}
			if err != nil {
				require.NotContains(t, err.Error(), "script")
				require.NotContains(t, err.Error(), genuine.Code)
				require.NotContains(t, err.Error(), genuine.State)
			}
			if tc.then == "" {
				tc.then = auth.StatusPending
			}
			require.Equal(t, tc.then, w.store.status("R"))
			require.Len(t, w.provider.tokenRequests(), tc.sent)
			require.Empty(t, w.store.allGrants())
			if tc.audit != "" {
				require.Contains(t, w.store.audits(), tc.audit)
			}
			require.Contains(t, w.logs.String(), tc.logs)
			require.NotContains(t, w.logs.String(), "script")
			require.NotContains(t, w.logs.String(), genuine.State)

			// What came in a wrong browser is burnt; what never touched the flow is not.
			w.provider.set(func(p *provider) { p.raw, p.answer, p.noResource = nil, nil, false })
			again, err := w.service.Complete(t.Context(), only(ann), genuine)
			switch {
			case tc.usable:
				require.NoError(t, err)
				require.Equal(t, auth.StatusGranted, again.Outcome)
			case tc.then == auth.StatusPending:
				require.Error(t, err)
				require.Len(t, w.provider.tokenRequests(), tc.sent, "nothing more is sent")
				// The same link asks again.
				w.clock = w.clock.Add(time.Minute)
				final, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
				require.NoError(t, err)
				require.Equal(t, auth.StatusGranted, final.Outcome)
			default:
				require.NoError(t, err)
				require.Equal(t, tc.then, again.Outcome)
			}
		})
	}
}

func TestRefusedCodeIsNeverUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	_, err := w.service.Complete(t.Context(), only(agent.Owner{App: "app", User: "mallory"}), cb)
	require.ErrorIs(t, err, oauth.ErrWrongUser)
	_, err = w.service.Complete(t.Context(), only(ann), cb)
	require.ErrorIs(t, err, oauth.ErrRefusedCode)
	require.Empty(t, w.provider.tokenRequests())
}

// Whoever sends a code from another browser and hangs up has still shown it to somebody.
func TestRefusedCodeIsRecordedWhoeverHangsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.service.Complete(gone, only(agent.Owner{App: "app", User: "mallory"}), cb)
	require.ErrorIs(t, err, oauth.ErrWrongUser)
	_, err = w.service.Complete(t.Context(), only(ann), cb)
	require.ErrorIs(t, err, oauth.ErrRefusedCode)
}

// Whoever knows a state may end that login, and no more: nothing grows, and the link begins another.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	wrong := cb
	wrong.Cookies = nil
	for i := range 100 {
		wrong.Code = fmt.Sprint("code", i)
		_, err := w.service.Complete(t.Context(), only(ann), wrong)
		require.ErrorIs(t, err, oauth.ErrWrongBrowser)
	}
	require.Len(t, w.store.refused, 32)
	require.Len(t, w.store.audits(), 1+32)
	for _, code := range []string{cb.Code, "code0", "code99"} {
		cb.Code = code
		_, err := w.service.Complete(t.Context(), only(ann), cb)
		require.ErrorIs(t, err, oauth.ErrSpentFlow)
	}
	require.Empty(t, w.provider.tokenRequests())
	require.Equal(t, auth.StatusPending, w.store.status("R"))
	out, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

func TestIssuerRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		advertised, present bool
		iss                 string
		ok                  bool
	}{
		"advertised and right":     {true, true, "", true},
		"not advertised and right": {false, true, "", true},
		"not advertised and wrong": {false, true, "https://other", false},
		"neither":                  {false, false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.metadata = map[string]any{"authorization_response_iss_parameter_supported": tc.advertised}
			w.ask("R", w.needOf(w.mcpWant()))
			cb := w.callback("R")
			cb.IssPresent = tc.present
			if !tc.present {
				cb.Iss = ""
			}
			if tc.iss != "" {
				cb.Iss = tc.iss
			}
			_, err := w.service.Complete(t.Context(), only(ann), cb)
			if tc.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, oauth.ErrIssuer)
			require.Empty(t, w.provider.tokenRequests())
		})
	}
	t.Run("a label is no issuer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.ask("R", w.needOf(w.explicitWant()))
		cb := w.callback("R")
		cb.Iss = "https://real-issuer.example"
		_, err := w.service.Complete(t.Context(), only(ann), cb)
		require.NoError(t, err)
	})
}

func TestDuplicateCallbacksShareOneExchange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	arrived, answer := make(chan struct{}, 5), make(chan struct{})
	w.provider.set(func(p *provider) { p.before = func(url.Values) { arrived <- struct{}{}; <-answer } })
	other := w.newService()
	var wg sync.WaitGroup
	outcomes := make([]auth.Status, 5)
	for i := range outcomes {
		s := w.service
		if i%2 == 1 {
			s = other
		}
		wg.Go(func() {
			if out, err := s.Complete(context.Background(), only(ann), cb); err == nil {
				outcomes[i] = out.Outcome
			}
		})
	}
	<-arrived
	close(answer)
	wg.Wait()
	for _, o := range outcomes {
		require.Equal(t, auth.StatusGranted, o)
	}
	require.Len(t, w.provider.tokenRequests(), 1)

	// The next day, too.
	w.pass(24 * time.Hour)
	out, err := w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Len(t, w.provider.tokenRequests(), 1)
}

func TestDuplicateOfAFailureSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	cb.Code = "made-up"
	_, err := w.service.Complete(t.Context(), only(ann), cb)
	require.Error(t, err)
	out, err := w.service.Complete(t.Context(), only(ann), cb)
	require.ErrorIs(t, err, oauth.ErrSpentFlow)
	require.Equal(t, auth.StatusPending, out.Outcome)
	require.Len(t, w.provider.tokenRequests(), 1)
}

func TestTwoTabs(t *testing.T) {
	t.Parallel()
	for _, secondFirst := range []bool{false, true} {
		w := newWorld(t)
		w.ask("R", w.needOf(w.mcpWant()))
		a, b := w.callback("R"), w.callback("R")
		if secondFirst {
			a, b = b, a
		}
		out, err := w.service.Complete(t.Context(), only(ann), a)
		require.NoError(t, err)
		require.Equal(t, auth.StatusGranted, out.Outcome)
		out, err = w.service.Complete(t.Context(), only(ann), b)
		require.NoError(t, err)
		require.Equal(t, auth.StatusGranted, out.Outcome)
		require.Len(t, w.provider.tokenRequests(), 1)
	}
}

func TestSecondTabTakesOverWhenTheFirstFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	bad, good := w.callback("R"), w.callback("R")
	bad.Code = "made-up"
	arrived, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.provider.set(func(p *provider) {
		p.before = func(url.Values) { once.Do(func() { close(arrived); <-answer }) }
	})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = w.service.Complete(context.Background(), only(ann), bad) })
	<-arrived
	var out oauth.Result
	var err error
	wg.Go(func() { out, err = w.service.Complete(context.Background(), only(ann), good) })
	close(answer)
	wg.Wait()
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

func TestOneConsentAnswersAllThatWaitForTheSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.needOf(w.mcpWant())
	w.ask("A", n)
	w.ask("B", n)
	a, b := w.callback("A"), w.callback("B")
	_, err := w.service.Complete(t.Context(), only(ann), a)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, w.store.status("B"))
	out, err := w.service.Complete(t.Context(), only(ann), b)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Len(t, w.provider.tokenRequests(), 1)
	require.Len(t, w.provider.register, 1, "one registration for both")
}

func TestClosingTheBrowserDoesNotStopTheExchange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	ctx, cancel := context.WithCancel(t.Context())
	w.provider.set(func(p *provider) { p.before = func(url.Values) { cancel() } })
	out, err := w.service.Complete(ctx, only(ann), cb)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

func TestDatabaseStumblesWhileCommitting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	w.store.fail("Commit", 2)
	out, err := w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

type crash struct{}

// dies runs f, which is to die at a fault point.
func dies(t *testing.T, f func()) {
	t.Helper()
	defer func() { require.Equal(t, crash{}, recover(), "it did not die") }()
	f()
}

func TestCrash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		point  string
		change func(w *world, cb *oauth.Callback)
		then   auth.Status
		sent   int
	}{
		"code written ahead, not sent":  {point: oauth.FaultExchanging, then: auth.StatusGranted, sent: 1},
		"answer lost":                   {point: oauth.FaultExchanged, then: auth.StatusPending, sent: 2},
		"token stored, nobody woken":    {point: oauth.FaultCommitted, then: auth.StatusGranted, sent: 1},
		"before the issuer was checked": {point: oauth.FaultExchanging, then: auth.StatusPending, change: func(_ *world, cb *oauth.Callback) { cb.Iss = "https://other" }},
		"before a denial was stored":    {point: oauth.FaultExchanging, then: auth.StatusDenied, change: func(_ *world, cb *oauth.Callback) { cb.Code, cb.Error = "", "access_denied" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(w.mcpWant()))
			cb := w.callback("R")
			if tc.change != nil {
				tc.change(w, &cb)
			}
			w.setFault(func(point string) {
				if point == tc.point {
					panic(crash{})
				}
			})
			dies(t, func() { _, _ = w.service.Complete(context.Background(), only(ann), cb) })
			w.setFault(nil)

			next := w.newService()
			n, err := next.Recover(t.Context())
			require.NoError(t, err)
			require.Zero(t, n, "the lease of the dead one has not ended")
			w.pass(time.Hour)
			_, err = next.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, tc.then, w.store.status("R"))
			require.Len(t, w.provider.tokenRequests(), tc.sent)
			if tc.then == auth.StatusPending {
				w.service = next
				out, err := next.Complete(t.Context(), only(ann), w.callback("R"))
				require.NoError(t, err)
				require.Equal(t, auth.StatusGranted, out.Outcome)
			}
			n, err = next.Recover(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

func TestRecoveryThatDiesTooReopens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	w.setFault(func(point string) {
		if point == oauth.FaultExchanged {
			panic(crash{})
		}
	})
	w.provider.set(func(p *provider) {
		p.raw = func(url.Values) (int, string, string) {
			return 200, "application/json", `{"access_token":"a","token_type":"bearer"}`
		}
	})
	dies(t, func() { _, _ = w.service.Complete(context.Background(), only(ann), cb) })
	w.pass(time.Hour)
	dies(t, func() { _, _ = w.service.Recover(context.Background()) })
	w.pass(time.Hour)
	w.setFault(nil)
	n, err := w.service.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, auth.StatusPending, w.store.status("R"))
	require.Len(t, w.provider.tokenRequests(), 2)
}

func TestNonce(t *testing.T) {
	t.Parallel()
	idToken := func(nonce string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"nonce":"`+nonce+`"}`)) + ".sig"
	}
	for name, tc := range map[string]struct {
		token func(nonce string) string
		err   error
	}{
		"right":   {idToken, nil},
		"none":    {func(string) string { return "" }, nil},
		"wrong":   {func(string) string { return idToken("x") }, oauth.ErrIdentity},
		"garbage": {func(string) string { return "x.y" }, oauth.ErrIdentity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := w.explicitWant()
			want.Auth.Type = agent.AuthOpenIDConnect
			w.ask("R", w.needOf(want))
			s, cookies := w.begin("R")
			u, err := url.Parse(s.RedirectURL)
			require.NoError(t, err)
			nonce := u.Query().Get("nonce")
			require.NotEmpty(t, nonce)
			cb := w.provider.approve(s.RedirectURL)
			cb.Cookies = cookies
			w.provider.set(func(p *provider) {
				p.answer = func(_ url.Values, f map[string]any) { f["id_token"] = tc.token(nonce) }
			})
			_, err = w.service.Complete(t.Context(), only(ann), cb)
			require.ErrorIs(t, err, tc.err)
		})
	}
}

func TestGrantedScopes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scope           any
		scopes, missing []string
	}{
		"not named":         {nil, []string{"read"}, nil},
		"fewer":             {"other", []string{"other", "read"}, []string{"read"}},
		"more, with commas": {"read,repo", []string{"read", "repo"}, nil},
		"a list":            {[]string{"read", "x"}, []string{"read", "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(w.mcpWant()))
			cb := w.callback("R")
			w.provider.set(func(p *provider) { p.answer = func(_ url.Values, f map[string]any) { f["scope"] = tc.scope } })
			out, err := w.service.Complete(t.Context(), only(ann), cb)
			require.NoError(t, err)
			require.Equal(t, auth.StatusGranted, out.Outcome)
			require.Equal(t, tc.missing, out.Missing)
			require.Equal(t, tc.scopes, w.store.allGrants()[0].Scopes)
		})
	}
}

// A grant that was edited or damaged where it lies gives nobody anything and sends nothing: it is dropped, which is logged
// and audited, and its person is asked.
func TestStoredColumnsCannotBeSwapped(t *testing.T) {
	t.Parallel()
	bob := agent.Owner{App: "app", User: "bob"}
	for name, tc := range map[string]struct {
		owner  agent.Owner
		change func(g *storedGrant)
		later  time.Duration
	}{
		"another person's": {bob, func(g *storedGrant) { g.Slot.Owner = bob }, 0},
		"columns":          {ann, func(g *storedGrant) { g.Access, g.Refresh = g.Refresh, g.Access }, 0},
		"columns, expired": {ann, func(g *storedGrant) { g.Access, g.Refresh = g.Refresh, g.Access }, 2 * time.Hour},
		"access token":     {ann, func(g *storedGrant) { g.Access = append(slices.Clone(g.Access[:len(g.Access)-1]), 'x') }, 0},
		"refresh token":    {ann, func(g *storedGrant) { g.Refresh = g.Refresh[:9] }, 2 * time.Hour},
		"token endpoint": {ann, func(g *storedGrant) {
			g.Provider.Issuer, g.Slot.Issuer = "https://evil.example", "https://evil.example"
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.login(w.mcpWant())
			w.pass(tc.later)
			w.store.mu.Lock()
			tc.change(w.store.grants[0])
			w.store.mu.Unlock()
			b := w.service.Broker(tc.owner, oauth.Use{}, nil)
			token, err := b.Token(t.Context(), w.mcpWant())
			n := required(t, err)
			require.True(t, token.Access.IsZero())
			require.Equal(t, tc.owner, n.Slot.Owner)
			require.Empty(t, w.store.allGrants())
			require.Contains(t, w.store.audits(), "dropped damaged")
			require.Contains(t, w.logs.String(), `"level":"ERROR"`)
			require.Len(t, w.provider.tokenRequests(), 1, "nothing but the login was sent")
		})
	}
}

// A value of a key that is not in this keyset may be whole: an old copy of the file loses nobody's login.
func TestGrantOfAnotherKeyIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	other := newWorld(t)
	service := w.newService(func(c *oauth.Config) { c.Vault = other.vault })
	_, err := service.Broker(ann, oauth.Use{}, nil).Token(t.Context(), w.mcpWant())
	require.ErrorIs(t, err, vault.ErrNoKey)
	require.Len(t, w.store.allGrants(), 1)
	_, err = w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
}

// A row that asks one person for the login of another gives nobody anything, before a login begins and after.
func TestChangedSlotOwnerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	cb := w.callback("R")
	w.store.mu.Lock()
	w.store.requests["R"].Need.Slot.Owner.User = "mallory"
	w.store.mu.Unlock()
	_, err := w.service.Begin(t.Context(), only(ann), "R", "")
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	_, err = w.service.Complete(t.Context(), only(ann), cb)
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.Empty(t, w.provider.tokenRequests())
	require.Empty(t, w.store.allGrants())
}

func FuzzCallbackWithoutItsStateSendsNothing(f *testing.F) {
	f.Add("state", "code", "", "iss", "digest", "cookie")
	f.Add("", "", "access_denied", "", "", "")
	f.Fuzz(func(t *testing.T, state, code, errorCode, iss, digest, cookie string) {
		w := newWorld(t)
		w.ask("R", w.needOf(w.mcpWant()))
		genuine := w.callback("R")
		cb := oauth.Callback{
			Digest: digest, State: state, Code: code, Error: errorCode, Iss: iss, IssPresent: iss != "",
			Cookies: func(string) string { return cookie },
		}
		_, err := w.service.Complete(t.Context(), only(ann), cb)
		require.ErrorIs(t, err, oauth.ErrUnknownState)
		// With its state, and without its cookie.
		cb.State = genuine.State
		_, err = w.service.Complete(t.Context(), only(ann), cb)
		require.ErrorIs(t, err, oauth.ErrWrongBrowser)
		require.Empty(t, w.provider.tokenRequests())
		require.Equal(t, auth.StatusPending, w.store.status("R"))
	})
}
