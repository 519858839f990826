package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

func unauthorized(used int64) auth.Challenge {
	return auth.Challenge{Status: 401, WWWAuthenticate: []string{"Bearer"}, Used: used}
}

func refreshes(p *provider) (out []url.Values) {
	for _, f := range p.tokenRequests() {
		if f.Get("grant_type") == "refresh_token" {
			out = append(out, f)
		}
	}
	return out
}

func TestNeedOfAnUnknownServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.broker()
	_, err := b.Token(t.Context(), w.mcpWant())
	require.ErrorIs(t, err, auth.ErrNoToken)
	err = b.Challenged(t.Context(), w.mcpWant(), auth.Challenge{Status: 401, WWWAuthenticate: []string{`Bearer scope="a b"`}})
	n := required(t, err)
	require.Equal(t, auth.Slot{Owner: ann, Issuer: w.provider.URL, Resource: w.provider.mcp(), Client: "dynamic"}, n.Slot)
	require.Equal(t, []string{"a", "b"}, n.Scopes)
	require.Equal(t, "mcp", n.Type)
	require.NotEmpty(t, n.Key)
	require.True(t, n.Provider.Discovered)

	// go-sdk asks twice for one refusal.
	seen := w.provider.discoveries()
	again := b.Challenged(t.Context(), w.mcpWant(), unauthorized(0))
	require.Same(t, err, again)
	require.Equal(t, seen, w.provider.discoveries())
}

func TestNeedOfADefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.broker().Token(t.Context(), w.explicitWant())
	n := required(t, err)
	require.Equal(t, auth.Slot{Owner: ann, Issuer: w.provider.URL, Resource: w.provider.mcp(), Client: "pre:client"}, n.Slot)
	require.Equal(t, "key", n.Key)
	require.Equal(t, agent.SecretRef("${env:TARRY_SECRET_CLIENT}"), n.Client.Secret)
	require.Zero(t, w.provider.discoveries())
}

func TestKeyIsStable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.explicitWant()
	want.Auth.Key = ""
	one := w.needOf(want).Key
	other := w.newService(func(c *oauth.Config) { c.PublicURL = &url.URL{Scheme: "https", Host: "elsewhere.example"} })
	_, err := other.Broker(agent.Owner{App: "app", User: "bob"}, oauth.Use{}, nil).Token(t.Context(), want)
	require.Equal(t, one, required(t, err).Key)
	want.Auth.ClientID = "other"
	require.NotEqual(t, one, w.needOf(want).Key)
}

func TestServerWithoutRegistrationNeedsAClientID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.noRegistration = true
	err := w.broker().Challenged(t.Context(), w.mcpWant(), unauthorized(0))
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.ErrorContains(t, err, "client_id")
	require.Empty(t, w.provider.register)

	want := w.mcpWant()
	want.Auth = agent.Auth{Type: agent.AuthMCP, ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}"}
	w.login(want)
	require.Empty(t, w.provider.register)
}

func TestPreregisteredClientIsBoundToItsIssuer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.mcpWant()
	want.Auth = agent.Auth{Type: agent.AuthMCP, ClientID: "client", Issuer: "https://mine.example"}
	err := w.broker().Challenged(t.Context(), want, unauthorized(0))
	require.ErrorIs(t, err, auth.ErrMisconfigured)
}

func TestOpenIDDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.explicitWant()
	want.Auth.Type, want.Auth.AuthorizationURL, want.Auth.TokenURL, want.Auth.Issuer = agent.AuthOpenIDConnect, "", "", w.provider.URL
	w.login(want)
}

func TestTokenGoesNowhereElse(t *testing.T) {
	t.Parallel()
	evil := "https://evil.example/mcp"
	for name, change := range map[string]func(a *agent.Auth, server *string){
		"server of another definition": func(_ *agent.Auth, server *string) { *server = evil },
		"that claims the resource":     func(a *agent.Auth, server *string) { *server, a.Resource = evil, evil },
		"that names no resource":       func(a *agent.Auth, server *string) { *server, a.Resource = evil, "" },
		"own token endpoint, same label": func(a *agent.Auth, _ *string) {
			a.Issuer, a.TokenURL = originOf(a.TokenURL), "https://evil.example/token"
		},
		"path that only begins the same":  func(_ *agent.Auth, server *string) { *server += "evil" },
		"path that climbs":                func(_ *agent.Auth, server *string) { *server += "/../admin" },
		"as if the server had asked":      func(a *agent.Auth, server *string) { *server, *a = evil, agent.Auth{} },
		"with another client":             func(a *agent.Auth, _ *string) { a.ClientID = "other" },
		"in another domain":               func(a *agent.Auth, _ *string) { a.Domain = "d" },
		"a function that names resources": func(a *agent.Auth, server *string) { *server, a.Resource = "", "https://evil.example" },
	} {
		for _, bound := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				want := w.explicitWant()
				if bound {
					want.Auth.Resource = ""
					w.provider.noResource = true
				}
				w.login(want)
				change(&want.Auth, &want.Server)
				token, err := w.broker().Token(t.Context(), want)
				require.Error(t, err)
				require.True(t, token.Access.IsZero())
				require.Len(t, w.store.uses, 1)
			})
		}
	}
}

func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func TestProviderWithoutResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.noResource = true
	want := w.explicitWant()
	want.Auth.Resource = ""
	token := w.login(want)
	w.pass(2 * time.Hour)
	next, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.NotEqual(t, token.Access.Reveal(), next.Access.Reveal())
	for _, form := range w.provider.tokenRequests() {
		require.False(t, form.Has("resource"))
	}
}

func TestUsersAndAppsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.explicitWant())
	for _, o := range []agent.Owner{{App: "app", User: "bob"}, {App: "b", User: "ann"}} {
		_, err := w.service.Broker(o, oauth.Use{}, nil).Token(t.Context(), w.explicitWant())
		require.Equal(t, o, required(t, err).Slot.Owner)
	}
}

func TestSecretsAreScrubbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.explicitWant())
	w.pass(2 * time.Hour)
	var scrub auth.Scrubber
	token, err := w.service.Broker(ann, oauth.Use{}, &scrub).Token(t.Context(), w.explicitWant())
	require.NoError(t, err)
	old := refreshes(w.provider)[0].Get("refresh_token")
	got := scrub.Scrub("you sent " + token.Access.Reveal() + " " + old + " s+cr/t:1")
	require.Equal(t, "you sent [secret] [secret] [secret]", got)
}

func TestRefreshBeforeUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.login(w.mcpWant())
	w.pass(time.Hour - 61*time.Second)
	same, err := w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Equal(t, first.Access.Reveal(), same.Access.Reveal())
	w.pass(2 * time.Second)
	next, err := w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.NotEqual(t, first.Access.Reveal(), next.Access.Reveal())
	require.Greater(t, next.Version, first.Version)
	require.Equal(t, w.provider.mcp(), refreshes(w.provider)[0].Get("resource"))
	require.Equal(t, []string{"read"}, next.Scopes)
}

func TestShortLivedTokensAreNotRefreshedAtEveryUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.answer = func(_ url.Values, f map[string]any) { f["expires_in"] = "10" }
	w.login(w.mcpWant())
	w.pass(7 * time.Second)
	_, err := w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Empty(t, refreshes(w.provider))
	w.pass(2 * time.Second)
	_, err = w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Len(t, refreshes(w.provider), 1)
}

func TestRefreshTokenThatIsNotReplacedIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	w.pass(2 * time.Hour)
	for _, omit := range []bool{true, false, true} {
		w.provider.set(func(p *provider) { p.keepRefresh = omit })
		_, err := w.broker().Token(t.Context(), w.mcpWant())
		require.NoError(t, err)
		w.service = w.newService() // and it survives a restart
		w.pass(2 * time.Hour)
	}
	sent := refreshes(w.provider)
	require.Len(t, sent, 3)
	r0 := sent[0].Get("refresh_token")
	require.Equal(t, r0, sent[1].Get("refresh_token"))
	require.NotEqual(t, r0, sent[2].Get("refresh_token"))
}

func TestOneRefreshForManyCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	w.pass(2 * time.Hour)
	arrived, answer := make(chan struct{}, 20), make(chan struct{})
	w.provider.set(func(p *provider) { p.before = func(url.Values) { arrived <- struct{}{}; <-answer } })
	services := []*oauth.Service{w.service, w.newService()}
	var wg sync.WaitGroup
	got := make([]string, 20)
	for i := range got {
		wg.Go(func() {
			token, err := services[i%2].Broker(ann, oauth.Use{}, nil).Token(context.Background(), w.mcpWant())
			if err == nil {
				got[i] = token.Access.Reveal()
			}
		})
	}
	<-arrived
	close(answer)
	wg.Wait()
	require.Len(t, refreshes(w.provider), 1)
	require.NotEmpty(t, got[0])
	require.Len(t, slices.Compact(got), 1)
}

func TestCallerThatGoesDoesNotLoseTheRotatedToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	w.pass(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	w.provider.set(func(p *provider) { p.before = func(url.Values) { cancel() } })
	w.store.fail("SaveRefresh", 2)
	_, _ = w.broker().Token(ctx, w.mcpWant())
	w.provider.set(func(p *provider) { p.before = nil })
	_, err := w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Len(t, refreshes(w.provider), 1)
}

func TestDeadRefresherIsSucceeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	g := w.store.allGrants()[0]
	w.pass(2 * time.Hour)
	_, ok, err := w.store.Lease(t.Context(), ann, g.ID, g.Version, 30*time.Second)
	require.NoError(t, err)
	require.True(t, ok)
	done := make(chan error)
	go func() {
		_, err := w.broker().Token(context.Background(), w.mcpWant())
		done <- err
	}()
	w.pass(time.Minute) // whoever had the lease is gone
	require.NoError(t, <-done)
	require.Len(t, refreshes(w.provider), 1)
}

func TestRefreshFails(t *testing.T) {
	t.Parallel()
	raw := func(status int, body string) func(url.Values) (int, string, string) {
		return func(url.Values) (int, string, string) { return status, "application/json", body }
	}
	for name, tc := range map[string]struct {
		raw  func(url.Values) (int, string, string)
		err  error // nil means that a login is needed
		kept bool
	}{
		"invalid_grant":              {raw(400, `{"error":"invalid_grant"}`), nil, false},
		"invalid_grant, HTTP 200":    {raw(200, `{"error":"invalid_grant"}`), nil, false},
		"GitHub's":                   {raw(200, `{"error":"bad_refresh_token","error_description":"x"}`), nil, false},
		"Slack's":                    {raw(200, `{"ok":false,"error":"invalid_refresh_token"}`), nil, false},
		"client forgotten":           {raw(401, `{"error":"invalid_client"}`), nil, false},
		"refresh not allowed":        {raw(400, `{"error":"unauthorized_client"}`), nil, true},
		"server error":               {raw(500, `{"error":"invalid_grant"}`), auth.ErrUnavailable, true},
		"busy":                       {raw(429, ``), auth.ErrUnavailable, true},
		"temporarily unavailable":    {raw(400, `{"error":"temporarily_unavailable"}`), auth.ErrUnavailable, true},
		"nonsense":                   {raw(200, `<html>`), auth.ErrUnavailable, true},
		"no token":                   {raw(200, `{}`), auth.ErrUnavailable, true},
		"proxy's page":               {raw(403, `<html>`), auth.ErrUnavailable, true},
		"connection lost":            {func(url.Values) (int, string, string) { panic(errAbort) }, auth.ErrUnavailable, true},
		"unknown code, not repeated": {raw(400, `{"error":"<b>SECRET</b>"}`), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := w.mcpWant()
			w.login(want)
			w.pass(2 * time.Hour)
			w.provider.set(func(p *provider) { p.raw = tc.raw })
			_, err := w.broker().Token(t.Context(), want)
			require.NotContains(t, err.Error(), "SECRET")
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
			} else {
				n := required(t, err)
				require.Equal(t, int64(1), n.Refused)
				require.Equal(t, []string{"read"}, n.Scopes)
				require.Len(t, refreshes(w.provider), 1)
			}
			require.Equal(t, tc.kept, len(w.store.allGrants()) == 1)
			if tc.err != nil {
				w.provider.set(func(p *provider) { p.raw = nil })
				_, err = w.broker().Token(t.Context(), want)
				require.NoError(t, err, "the grant still works")
			}
		})
	}
}

var errAbort = errors.New("abort")

func TestUnknownPreregisteredClientIsAMisconfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.explicitWant())
	w.pass(2 * time.Hour)
	w.provider.set(func(p *provider) { clear(p.clients) })
	_, err := w.broker().Token(t.Context(), w.explicitWant())
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.Len(t, w.store.allGrants(), 1)
}

func TestStaleInvalidGrantNeverDeletesANewerToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	n := w.needOf(auth.Want{Server: w.provider.mcp(), Refused: 99})
	w.ask("again", n)
	cb := w.callback("again")
	w.provider.set(func(p *provider) {
		p.before = func(form url.Values) {
			if form.Get("grant_type") != "refresh_token" {
				return
			}
			// While the refresh is under way, the person logs in again, and the provider forgets the old grant.
			_, err := w.service.Complete(context.Background(), only(ann), cb)
			require.NoError(t, err)
		}
		clear(p.refresh)
	})
	b := w.broker()
	require.NoError(t, b.Challenged(t.Context(), w.mcpWant(), unauthorized(1)))
	token, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Equal(t, int64(2), token.Version)
	require.Len(t, w.store.allGrants(), 1)
}

func TestNoRefreshToken(t *testing.T) {
	t.Parallel()
	for _, want := range []func(*world) auth.Want{(*world).mcpWant, (*world).explicitWant} {
		w := newWorld(t)
		w.provider.answer = func(_ url.Values, f map[string]any) { delete(f, "refresh_token") }
		first := w.login(want(w))
		w.pass(time.Hour - time.Second)
		_, err := w.broker().Token(t.Context(), want(w))
		require.NoError(t, err, "it is used to its end")
		w.pass(time.Second)
		_, err = w.broker().Token(t.Context(), want(w))
		require.Equal(t, first.Version, required(t, err).Refused)
	}
}

func TestUnknownExpiryIsUsedUntilRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.answer = func(_ url.Values, f map[string]any) { delete(f, "expires_in") }
	first := w.login(w.mcpWant())
	require.True(t, first.Expires.IsZero())
	w.pass(365 * 24 * time.Hour)
	b := w.broker()
	_, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Empty(t, refreshes(w.provider))

	require.NoError(t, b.Challenged(t.Context(), w.mcpWant(), unauthorized(first.Version)))
	next, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Greater(t, next.Version, first.Version)
	require.Len(t, refreshes(w.provider), 1)

	// The fresh one is refused too: a login, not another refresh.
	err = b.Challenged(t.Context(), w.mcpWant(), unauthorized(next.Version))
	require.Equal(t, next.Version, required(t, err).Refused)
	require.Len(t, refreshes(w.provider), 1)
}

func TestRequestsThatAreRefusedTogetherShareTheRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.login(w.mcpWant())
	b := w.broker()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = b.Challenged(context.Background(), w.mcpWant(), unauthorized(token.Version)) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, refreshes(w.provider), 1)
}

func TestRefusedTokenThatWasReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.login(w.explicitWant())
	w.pass(2 * time.Hour)
	_, err := w.broker().Token(t.Context(), w.explicitWant())
	require.NoError(t, err)
	require.NoError(t, w.broker().Challenged(t.Context(), w.explicitWant(), unauthorized(old.Version)))
	require.Len(t, refreshes(w.provider), 1)
}

func TestRefusedVersionIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, want := range []auth.Want{w.explicitWant(), w.mcpWant()} {
		token := w.login(want)
		want.Refused = token.Version
		b := w.broker()
		_, err := b.Token(t.Context(), want)
		require.Error(t, err)
		if errors.Is(err, auth.ErrNoToken) {
			err = b.Challenged(t.Context(), want, unauthorized(0))
		}
		require.Equal(t, token.Version, required(t, err).Refused)
	}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	step := func(scope string) []string {
		return []string{`Bearer error="insufficient_scope", scope="` + scope + `"`}
	}
	for name, tc := range map[string]struct {
		header []string
		max    []string
		err    error
		scopes []string
	}{
		"more scopes":           {header: step("write"), scopes: []string{"read", "write"}},
		"within the limit":      {header: step("write"), max: []string{"read", "write", "x"}, scopes: []string{"read", "write"}},
		"beyond the limit":      {header: step("admin"), max: []string{"read", "write"}, err: oauth.ErrScopeLimit},
		"scopes that are there": {header: step("read"), err: oauth.ErrForbidden},
		"another error":         {header: []string{`Bearer error="invalid_token"`}, err: oauth.ErrForbidden},
		"no challenge":          {err: oauth.ErrForbidden},
	} {
		for kind, want := range map[string]func(*world) auth.Want{"discovered": (*world).mcpWant, "explicit": (*world).explicitWant} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				token := w.login(want(w))
				asked := want(w)
				asked.Auth.MaxScopes = tc.max
				b := w.broker()
				err := b.Challenged(t.Context(), asked, auth.Challenge{Status: 403, WWWAuthenticate: tc.header, Used: token.Version})
				if tc.err != nil {
					require.ErrorIs(t, err, tc.err)
					var r *auth.RequiredError
					require.NotErrorAs(t, err, &r)
					return
				}
				n := required(t, err)
				require.Equal(t, tc.scopes, n.Scopes)
				require.Empty(t, refreshes(w.provider), "a refresh gives no scopes")

				// After the login the server refuses again: it is told to the model, nobody is asked again.
				w.ask("R", n)
				_, err = w.service.Complete(t.Context(), only(ann), w.callback("R"))
				require.NoError(t, err)
				b = w.broker()
				token, err = b.Token(t.Context(), asked)
				require.NoError(t, err)
				err = b.Challenged(t.Context(), asked, auth.Challenge{Status: 403, WWWAuthenticate: tc.header, Used: token.Version})
				require.ErrorIs(t, err, oauth.ErrForbidden)
			})
		}
	}
}

func TestDefinitionThatWantsMoreThanWasGrantedAsksForBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.explicitWant())
	want := w.explicitWant()
	want.Auth.Scopes = []string{"write"}
	_, err := w.broker().Token(t.Context(), want)
	require.Equal(t, []string{"read", "write"}, required(t, err).Scopes)
}

func TestListedScopesAreCutToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.mcpWant()
	want.Auth.MaxScopes = []string{"write"}
	require.Empty(t, w.needOf(want).Scopes)
}

func TestTokenAnswersOfAllShapes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, body string }{
		"form":             {"application/x-www-form-urlencoded; charset=utf-8", "access_token=A-token&token_type=bearer&scope=read%2Crepo&expires_in=3600"},
		"form as text":     {"text/plain", "access_token=A-token&token_type=bearer&scope=read,repo&expires_in=3600"},
		"GitHub in JSON":   {"application/json; charset=utf-8", `{"access_token":"A-token","token_type":"bearer","scope":"read,repo","expires_in":3600}`},
		"JSON as text":     {"text/plain", `{"access_token":"A-token","scope":"read repo","expires_in":"3600"}`},
		"JSON, no type":    {"", `{"access_token":"A-token","token_type":"Bearer","scope":["read","repo"],"expires_in":3600.0}`},
		"fields of no use": {"application/json", `{"access_token":"A-token","scope":"read repo","expires_in":3600,"x":{"y":[1,null]},"refresh_token":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.raw = func(url.Values) (int, string, string) { return 200, tc.kind, tc.body }
			token := w.login(w.explicitWant())
			require.Equal(t, "A-token", token.Access.Reveal())
			require.Equal(t, []string{"read", "repo"}, token.Scopes)
			require.Equal(t, w.now().Add(time.Hour), token.Expires)
		})
	}
}

func TestServerThatMovesToAnotherProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.login(w.mcpWant())
	other := newProvider(t)
	w.provider.set(func(p *provider) { p.servers = []string{other.URL} })
	n := required(t, w.broker().Challenged(t.Context(), w.mcpWant(), unauthorized(0)))
	require.Equal(t, other.URL, n.Slot.Issuer)
	w.ask("R", n)
	s, cookies := w.begin("R")
	cb := other.approve(s.RedirectURL)
	cb.Cookies = cookies
	_, err := w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Len(t, other.register, 1, "the client of the first provider is not shown to the second")
	require.Len(t, w.provider.tokenRequests(), 1)
	token, err := w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.NotEqual(t, first.Access.Reveal(), token.Access.Reveal(), "the newest login counts")
}

func TestStoreErrorsAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.explicitWant())
	for _, method := range []string{"Grants", "Used"} {
		w.store.fail(method, 1)
		token, err := w.broker().Token(t.Context(), w.explicitWant())
		require.ErrorIs(t, err, errDatabase)
		require.True(t, token.Access.IsZero())
	}
}

// A server or provider that repeats what it was sent, where an answer has room for scopes, addresses and codes: it is not
// stored, shown or logged.
func TestEchoedSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login(w.mcpWant())
	b := w.broker()
	token, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	secret := token.Access.Reveal()
	err = b.Challenged(t.Context(), w.mcpWant(), auth.Challenge{
		Status: 403, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="write ` + secret + `"`}, Used: token.Version,
	})
	require.ErrorIs(t, err, oauth.ErrForbidden)
	require.NotContains(t, err.Error(), secret)
	// Another attempt has not sent it yet, and the server has it from this one.
	for name, header := range map[string]string{
		"as a scope": `Bearer scope="write ` + secret + `"`, "as an address": `Bearer scope="write", resource_metadata="` + w.provider.URL + "/" + secret + `"`,
	} {
		err = w.broker().Challenged(t.Context(), w.mcpWant(), auth.Challenge{Status: 401, WWWAuthenticate: []string{header}})
		require.NotContains(t, fmt.Sprintf("%+v", required(t, err)), secret, name)
	}
	for said, want := range map[string]string{
		"invalid_grant": "invalid_grant", "code_ABCDEFGHIJKLMNOP": "unrecognized", "ghp1234567890": "unrecognized", "a b": "unrecognized",
	} {
		require.Equal(t, want, oauth.CleanCode(said))
	}
}
