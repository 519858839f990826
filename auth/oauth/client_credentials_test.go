package oauth_test

import (
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// appWant is a tool whose credential is the app's own, with the token endpoint written out.
func (w *world) appWant() auth.Want {
	return auth.Want{Server: w.provider.mcp(), Tool: "tool", Toolset: "set", Auth: agent.Auth{
		Key: "app", Type: agent.AuthOAuth2, Grant: agent.GrantClientCredentials, TokenURL: w.provider.URL + "/token",
		ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}", Scopes: []string{"read"}, Resource: w.provider.mcp(),
	}}
}

// appMCPWant is the same with everything but the issuer discovered.
func (w *world) appMCPWant() auth.Want {
	return auth.Want{Server: w.provider.mcp(), Tool: "tool", Toolset: "set", Auth: agent.Auth{
		Type: agent.AuthMCP, Grant: agent.GrantClientCredentials, Issuer: w.provider.URL, ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}",
	}}
}

func appWants() map[string]func(*world) auth.Want {
	return map[string]func(*world) auth.Want{"written": (*world).appWant, "discovered": (*world).appMCPWant}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	for name, wantOf := range appWants() {
		for _, method := range []string{"client_secret_basic", "client_secret_post"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.provider.metadata = map[string]any{"authorization_endpoint": nil, "code_challenge_methods_supported": nil, "token_endpoint_auth_methods_supported": []string{method}}
				want := wantOf(w)
				if name == "written" {
					want.Auth.ClientAuth = method
				}
				token, err := w.broker().Token(t.Context(), want)
				require.NoError(t, err, "nobody is asked")
				form := w.provider.tokenRequests()[0]
				require.Equal(t, "client_credentials", form.Get("grant_type"))
				require.Equal(t, "read", form.Get("scope"))
				require.Equal(t, w.provider.mcp(), form.Get("resource"))
				require.Equal(t, method == "client_secret_post", form.Has("client_secret"))
				require.Equal(t, method == "client_secret_basic", w.provider.auths[0] != "")
				require.Equal(t, []string{"read"}, token.Scopes)
				require.Equal(t, "app:client", w.store.allGrants()[0].Slot.Client)
				require.Contains(t, w.store.audits(), "granted client credentials")

				again, err := w.broker().Token(t.Context(), want)
				require.NoError(t, err)
				require.Equal(t, token.Access.Reveal(), again.Access.Reveal())
				require.Len(t, w.provider.tokenRequests(), 1)

				w.pass(time.Hour - 30*time.Second)
				next, err := w.broker().Token(t.Context(), want)
				require.NoError(t, err)
				require.Greater(t, next.Version, token.Version, "it was due")
				require.Equal(t, "client_credentials", w.provider.tokenRequests()[1].Get("grant_type"))
			})
		}
	}
}

// A refused token is replaced once. After that somebody has to change something, and no person who is asked can.
func TestRefusedAppToken(t *testing.T) {
	t.Parallel()
	for name, wantOf := range appWants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := wantOf(w)
			b := w.broker()
			token, err := b.Token(t.Context(), want)
			require.NoError(t, err)
			require.NoError(t, b.Challenged(t.Context(), want, unauthorized(token.Version)))
			want.Refused = token.Version
			next, err := b.Token(t.Context(), want)
			require.NoError(t, err)
			require.NotEqual(t, token.Access.Reveal(), next.Access.Reveal())
			err = b.Challenged(t.Context(), want, unauthorized(next.Version))
			require.ErrorIs(t, err, auth.ErrMisconfigured)
			require.ErrorContains(t, err, `refuses the token that client "client" was just given`)
			var asked *auth.RequiredError
			require.NotErrorAs(t, err, &asked)
			require.Len(t, w.provider.tokenRequests(), 2)
			// What another attempt has fetched meanwhile is used.
			require.NoError(t, w.broker().Challenged(t.Context(), want, unauthorized(token.Version)))
			require.Len(t, w.provider.tokenRequests(), 2)
		})
	}
}

func TestAppTokenThatIsNotGiven(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) func(*provider) {
		return func(p *provider) {
			p.raw = func(url.Values) (int, string, string) { return status, "application/json", body }
		}
	}
	for name, tc := range map[string]struct {
		change func(*provider)
		want   func(*auth.Want)
		err    error
		says   string
	}{
		"unknown client":   {change: func(p *provider) { clear(p.clients) }, err: auth.ErrMisconfigured, says: `does not know client "client" or its secret`},
		"grant not given":  {change: answer(400, `{"error":"unauthorized_client"}`), err: auth.ErrMisconfigured, says: "(unauthorized_client): allow it the grant client_credentials"},
		"script":           {change: answer(400, `{"error":"<script>"}`), err: auth.ErrMisconfigured, says: "(unrecognized)"},
		"scopes":           {change: answer(400, `{"error":"invalid_scope"}`), err: oauth.ErrScopeRefused, says: "max_scopes"},
		"resource":         {change: func(p *provider) { p.noResource = true }, err: oauth.ErrResourceRefused, says: "omit_resource: true"},
		"resource omitted": {change: func(p *provider) { p.noResource = true }, want: func(w *auth.Want) { w.Auth.OmitResource = true }},
		"down":             {change: answer(503, ``), err: auth.ErrUnavailable},
		"no token":         {change: answer(200, `{}`), err: auth.ErrUnavailable},
		"no secret":        {want: func(w *auth.Want) { w.Auth.ClientSecret = "${env:TARRY_SECRET_OTHER}" }, err: auth.ErrMisconfigured, says: "TARRY_SECRET_OTHER"},
		"secret left out":  {want: func(w *auth.Want) { w.Auth.ClientSecret = "" }, err: auth.ErrMisconfigured, says: "has no client_id with client_secret or private_key"},
		"other server":     {want: func(w *auth.Want) { w.Server = "https://evil.example/mcp" }, err: auth.ErrMisconfigured, says: "is not sent to evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := w.appWant()
			if tc.change != nil {
				w.provider.set(tc.change)
			}
			if tc.want != nil {
				tc.want(&want)
			}
			_, err := w.broker().Token(t.Context(), want)
			if tc.err == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tc.err)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "script")
			require.NotContains(t, err.Error(), "s+cr/t:1")
			var asked *auth.RequiredError
			require.NotErrorAs(t, err, &asked)
			require.Empty(t, w.store.allGrants())
		})
	}
}

func TestAppTokenOutlivesAShortOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token, err := w.broker().Token(t.Context(), w.appWant())
	require.NoError(t, err)
	w.pass(time.Hour - 30*time.Second)
	w.provider.set(func(p *provider) { p.raw = func(url.Values) (int, string, string) { return 503, "", "" } })
	again, err := w.broker().Token(t.Context(), w.appWant())
	require.NoError(t, err, "it is due and still lives")
	require.Equal(t, token.Access.Reveal(), again.Access.Reveal())
	w.pass(time.Minute)
	_, err = w.broker().Token(t.Context(), w.appWant())
	require.ErrorIs(t, err, auth.ErrUnavailable)
	w.provider.set(func(p *provider) { p.raw = nil })
	_, err = w.broker().Token(t.Context(), w.appWant())
	require.NoError(t, err, "the failure left no lease")
}

// One request for all callers, whether there is none or one that is due; two processes share the lease of the latter.
func TestOneAppTokenForManyCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.service, w.newService()
	call := func(services ...*oauth.Service) (versions map[int64]int) {
		versions = map[int64]int{}
		var mu sync.Mutex
		var work sync.WaitGroup
		for i := range 20 {
			b := services[i%len(services)].Broker(ann, oauth.Use{}, nil)
			work.Go(func() {
				token, err := b.Token(t.Context(), w.appWant())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				versions[token.Version]++
			})
		}
		work.Wait()
		return versions
	}
	require.Equal(t, map[int64]int{1: 20}, call(first))
	require.Len(t, w.provider.tokenRequests(), 1)
	w.pass(2 * time.Hour)
	var running atomic.Int64
	w.provider.set(func(p *provider) {
		p.before = func(url.Values) {
			require.EqualValues(t, 1, running.Add(1))
			require.Eventually(t, func() bool { return w.store.leased() >= 2 }, 5*time.Second, time.Millisecond, "the other process waits")
			running.Add(-1)
		}
	})
	require.Equal(t, map[int64]int{2: 20}, call(first, second))
	require.Len(t, w.provider.tokenRequests(), 2)
}

// The app's token is no person's, and a person's is not the app's, though their client is one.
func TestAppAndPersonAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person, app := w.appWant(), w.appWant()
	person.Auth.Grant, person.Auth.AuthorizationURL = "", w.provider.URL+"/authorize"
	token, err := w.broker().Token(t.Context(), app)
	require.NoError(t, err)
	_, err = w.broker().Token(t.Context(), person)
	require.Equal(t, "pre:client", required(t, err).Slot.Client)
	own := w.login(person)
	require.NotEqual(t, token.Access.Reveal(), own.Access.Reveal())
	again, err := w.broker().Token(t.Context(), app)
	require.NoError(t, err)
	require.Equal(t, token.Access.Reveal(), again.Access.Reveal())
	_, err = w.service.Broker(agent.Owner{App: "app", User: "bob"}, oauth.Use{}, nil).Token(t.Context(), app)
	require.NoError(t, err)
	require.Len(t, w.store.allGrants(), 3, "each owner has a slot of its own")
}

func TestAppTokenForMoreScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.appMCPWant()
	want.Auth.MaxScopes = []string{"read", "write"}
	b := w.broker()
	token, err := b.Token(t.Context(), want)
	require.NoError(t, err)
	step := func(used int64, scope string) error {
		return w.broker().Challenged(t.Context(), want, auth.Challenge{Status: 403, Used: used, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="` + scope + `"`}})
	}
	require.NoError(t, step(token.Version, "write"))
	want.Refused = token.Version
	next, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, []string{"read", "write"}, next.Scopes)
	w.pass(2 * time.Hour)
	want.Refused = 0
	next, err = w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, []string{"read", "write"}, next.Scopes, "the next token is for as much")
	require.ErrorIs(t, step(next.Version, "write"), oauth.ErrForbidden, "it was given and is not enough")
	require.ErrorIs(t, step(next.Version, "admin"), oauth.ErrScopeLimit)
	require.ErrorIs(t, w.broker().Challenged(t.Context(), want, auth.Challenge{Status: 403, Used: next.Version}), oauth.ErrForbidden)
}

// Nobody is asked, so nobody could refuse: a server gets no scopes beyond those of the definition.
func TestAppTokenKeepsToItsScopes(t *testing.T) {
	t.Parallel()
	for name, wantOf := range appWants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := wantOf(w)
			want.Auth.Scopes = []string{"read"}
			token, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			require.Equal(t, []string{"read"}, token.Scopes)
			err = w.broker().Challenged(t.Context(), want, auth.Challenge{Status: 403, Used: token.Version, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="admin"`}})
			require.ErrorIs(t, err, oauth.ErrScopeLimit)
			for _, form := range w.provider.tokenRequests() {
				require.Equal(t, "read", form.Get("scope"))
			}
		})
	}
}

// Where the definition names no scopes, a server says what its token must be good for before it gets one, and not after.
func TestAppTokenDoesNotGrowByChallenges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scopes string // of the first token, of a definition that names none
		want   func(*world) auth.Want
	}{
		"written":    {"", func(w *world) auth.Want { want := w.appWant(); want.Auth.Scopes = nil; return want }},
		"discovered": {"read", (*world).appMCPWant},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := tc.want(w)
			token, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			err = w.broker().Challenged(t.Context(), want, auth.Challenge{Status: 403, Used: token.Version, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="read admin"`}})
			require.ErrorIs(t, err, oauth.ErrScopeLimit)
			require.ErrorIs(t, err, auth.ErrMisconfigured)
			require.ErrorContains(t, err, "admin, and nobody is asked: list that in max_scopes under tarry if client \"client\" may use it there")
			require.Len(t, w.provider.tokenRequests(), 1)

			challenge := auth.Challenge{Status: 401, Used: token.Version, WWWAuthenticate: []string{`Bearer error="invalid_token", scope="admin"`}}
			b := w.broker()
			require.NoError(t, b.Challenged(t.Context(), want, challenge), "the token may be revoked")
			want.Refused = token.Version
			next, err := b.Token(t.Context(), want)
			require.NoError(t, err)
			require.NotContains(t, next.Scopes, "admin")
			for _, form := range w.provider.tokenRequests() {
				require.Equal(t, tc.scopes, form.Get("scope"))
			}
			challenge.Used = next.Version
			require.ErrorContains(t, b.Challenged(t.Context(), want, challenge), "max_scopes")
		})
	}
}

// The server's documents may say nothing before it is asked.
func TestAppTokenAfterAChallenge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.set(func(p *provider) { p.legacy = true })
	want := w.appMCPWant()
	b := w.broker()
	_, err := b.Token(t.Context(), want)
	require.ErrorIs(t, err, auth.ErrNoToken)
	w.provider.set(func(p *provider) { p.legacy = false })
	require.NoError(t, b.Challenged(t.Context(), want, unauthorized(0)))
	_, err = b.Token(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, w.provider.tokenRequests(), 1)
}

// The server names another provider: the secret stays where it belongs.
func TestSecretOfAnAppStaysWithItsIssuer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := newProvider(t)
	w.provider.set(func(p *provider) { p.servers = []string{other.URL} })
	want := w.appMCPWant()
	err := w.broker().Challenged(t.Context(), want, unauthorized(0))
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	for _, p := range []*provider{w.provider, other} {
		u, parseErr := url.Parse(p.URL)
		require.NoError(t, parseErr)
		require.ErrorContains(t, err, u.Host, "both are named")
		require.Empty(t, p.tokenRequests())
	}
}
