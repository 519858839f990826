package signin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/internal/demo"
	"tarry/server/signin"
	"tarry/store/storetest"
)

const link = "/connect?request=adk-1&state=corr&redirect_uri=http%3A%2F%2Flocalhost%2Fdev-ui%2F"

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := demo.NewBrowser()
	page := w.signIn(b, link, "alice")
	require.Equal(t, http.StatusOK, page.Status, page.Text)
	require.Contains(t, page.Text, `"uri":"/connect?request=adk-1\u0026state=corr\u0026redirect_uri=http%3A%2F%2Flocalhost%2Fdev-ui%2F"`, "exactly the page that was opened")
	require.Contains(t, page.Text, signin.UserID(w.provider.Issuer(), demo.Subject("alice")))
	require.Contains(t, page.Text, `"name":"Alice"`)
	asked := w.provider.Requests()
	var authorize url.Values
	for _, r := range asked {
		if r.Path == "/authorize" {
			authorize = r.Params
		}
	}
	require.Equal(t, "S256", authorize.Get("code_challenge_method"))
	require.Len(t, authorize.Get("state"), 52)
	require.Len(t, authorize.Get("nonce"), 52)
	require.Equal(t, "openid profile", authorize.Get("scope"))

	session := w.session(b)
	require.Len(t, session, 52)
	status := w.open(b, signin.Path)
	require.Equal(t, "Signed in", status.Title)
	require.Contains(t, status.Text, "Alice")
	require.Equal(t, "no-store", status.Header.Get("Cache-Control"))

	// Another site's form signs nobody out.
	for name, form := range map[string]url.Values{"no token": {}, "made up": {"csrf": {"x"}}} {
		res := w.call(http.MethodPost, signin.SignOutPath+"?"+form.Encode(), http.Header{"Cookie": {"tarry-session=" + session}, "Origin": {w.url}})
		require.Equal(t, http.StatusForbidden, res.status, name)
	}
	res := w.call(http.MethodPost, signin.SignOutPath, http.Header{"Cookie": {"tarry-session=" + session}, "Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}})
	require.Equal(t, http.StatusForbidden, res.status)
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + session}}).status)

	out, err := b.Press(t.Context(), status, "sign out")
	require.NoError(t, err)
	require.Equal(t, "Signed out", out.Title)
	require.Equal(t, signin.SignOutPath, out.URL.Path)
	require.Equal(t, 1, w.provider.Counts().Logouts, "at the provider too")
	require.Empty(t, w.session(b))
	require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + session}}).status, "a copy of the cookie is worth nothing")
	require.Contains(t, w.open(b, link).Title, "Sign in", "the provider asks again")
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := demo.NewBrowser()
	w.signIn(b, link, "alice")
	cookie := http.Header{"Cookie": {"tarry-session=" + w.session(b)}}
	for range 4 {
		require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", cookie).status)
		w.pass(59 * time.Minute)
	}
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", cookie).status)
	w.pass(5 * time.Minute)
	require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", cookie).status, "lifetime")

	other := demo.NewBrowser()
	w.provider.Advance(241 * time.Minute)
	w.signIn(other, link, "bob")
	cookie = http.Header{"Cookie": {"tarry-session=" + w.session(other)}}
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", cookie).status)
	w.pass(61 * time.Minute)
	require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", cookie).status, "idle")
}

// A session id that somebody planted before sign-in is not the one afterwards, and one that was good is over.
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	attacker := demo.NewBrowser()
	w.signIn(attacker, link, "bob")
	planted := w.session(attacker)
	victim := demo.NewBrowser()
	victim.Header = http.Header{"Cookie": {"tarry-session=" + planted}}
	require.Contains(t, w.open(victim, "/api").Text, signin.UserID(w.provider.Issuer(), demo.Subject("bob")), "the attack's first half")
	victim.Header = nil
	w.signIn(victim, link, "alice")
	require.NotEqual(t, planted, w.session(victim))

	// Signing in again in one browser ends what it had.
	before := w.session(victim)
	answer := w.toCallbackAgain(victim)
	require.Equal(t, http.StatusOK, w.open(victim, answer).Status)
	after := w.session(victim)
	require.NotEqual(t, before, after)
	require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + before}}).status)
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + after}}).status)
}

// toCallbackAgain begins a sign-in in a second tab while the first is signed out, and comes back when it is signed in again.
func (w *world) toCallbackAgain(b *demo.Browser) string {
	w.t.Helper()
	// The tab began before: its attempt's cookie is there beside the session.
	keep := w.session(b)
	w.pass(61 * time.Minute) // the session is idle, so that the page begins a sign-in
	b.StopAt = func(u *url.URL) bool { return u.Path == signin.CallbackPath }
	page, err := b.Login(w.t.Context(), w.url+link, "alice", "alice-password")
	require.NoError(w.t, err)
	b.StopAt = nil
	require.Equal(w.t, signin.CallbackPath, page.URL.Path, page.Text)
	require.Equal(w.t, keep, w.session(b))
	w.clock.Store(0)
	require.Equal(w.t, http.StatusOK, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + keep}}).status)
	return page.URL.RequestURI()
}

func TestRefusedCallbacks(t *testing.T) {
	t.Parallel()
	alter := func(f func(url.Values)) func(*world, *demo.Browser, string) (*demo.Browser, string) {
		return func(_ *world, b *demo.Browser, answer string) (*demo.Browser, string) {
			u, _ := url.Parse(answer)
			q := u.Query()
			f(q)
			u.RawQuery = q.Encode()
			return b, u.RequestURI()
		}
	}
	for name, tc := range map[string]struct {
		change func(w *world, b *demo.Browser, answer string) (*demo.Browser, string)
		faults func(*demo.Faults)
		status int
		sent   int // token requests
	}{
		"attacker's answer in the victim's browser": {change: func(_ *world, _ *demo.Browser, answer string) (*demo.Browser, string) {
			return demo.NewBrowser(), answer
		}, status: 403},
		"attacker's code with the victim's state": {change: func(w *world, b *demo.Browser, answer string) (*demo.Browser, string) {
			other := w.toCallback(demo.NewBrowser(), link, "bob")
			u, _ := url.Parse(other)
			return alter(func(q url.Values) { q.Set("code", u.Query().Get("code")) })(w, b, answer)
		}, status: 403, sent: 1},
		"state of nobody": {change: alter(func(q url.Values) { q.Set("state", "x") }), status: 403},
		"no state":        {change: alter(func(q url.Values) { q.Del("state") }), status: 400},
		"two states":      {change: alter(func(q url.Values) { q.Add("state", "x") }), status: 400},
		"no code":         {change: alter(func(q url.Values) { q.Del("code") }), status: 400},
		"denied":          {change: alter(func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }), status: 403},
		"script":          {change: alter(func(q url.Values) { q.Del("code"); q.Set("error", "<script>alert(1)</script>") }), status: 403},
		"wrong iss":       {change: alter(func(q url.Values) { q.Set("iss", "https://evil.example") }), status: 403},
		"missing iss":     {change: alter(func(q url.Values) { q.Del("iss") }), status: 403},
		"too late": {change: func(w *world, b *demo.Browser, answer string) (*demo.Browser, string) {
			w.pass(11 * time.Minute)
			return b, answer
		}, status: 403},
		"replay": {change: func(w *world, b *demo.Browser, answer string) (*demo.Browser, string) {
			kept := b.Cookies(w.url)
			require.Equal(w.t, http.StatusOK, w.open(b, answer).Status)
			again := demo.NewBrowser()
			again.Header = http.Header{}
			for _, c := range kept {
				again.Header.Add("Cookie", c.String())
			}
			return again, answer
		}, status: 403, sent: 1},
		"wrong nonce":    {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"nonce": "x"} }, status: 403, sent: 1},
		"no nonce":       {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"nonce": nil} }, status: 403, sent: 1},
		"other audience": {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"aud": "another"} }, status: 403, sent: 1},
		"authorized another": {faults: func(f *demo.Faults) {
			f.IDTokenClaims = map[string]any{"aud": []string{clientID, "another"}, "azp": "another"}
		}, status: 403, sent: 1},
		"other issuer":  {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"iss": "https://evil.example"} }, status: 403, sent: 1},
		"expired":       {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"exp": 1} }, status: 403, sent: 1},
		"no subject":    {faults: func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"sub": nil} }, status: 403, sent: 1},
		"token error":   {faults: func(f *demo.Faults) { f.TokenError, f.EchoErrors = "invalid_grant", true }, status: 403, sent: 1},
		"provider down": {faults: func(f *demo.Faults) { f.TokenFailures = 9 }, status: 503, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			b := demo.NewBrowser()
			answer := w.toCallback(b, link, "alice")
			if tc.faults != nil {
				w.provider.SetFaults(tc.faults)
			}
			if tc.change != nil {
				b, answer = tc.change(w, b, answer)
			}
			reached := w.reached.Load()
			page := w.open(b, answer)
			require.Equal(t, tc.status, page.Status, page.Text)
			require.Equal(t, "Not signed in", page.Title)
			require.NotContains(t, page.Body, "<script")
			require.Equal(t, tc.sent, w.provider.Counts().Token["authorization_code"])
			require.Empty(t, w.session(b))
			require.Equal(t, reached, w.reached.Load())
			require.NotContains(t, w.logs.String(), demo.DefaultMark)
			require.NotContains(t, w.logs.String(), "script")
		})
	}
}

// A tool's callback comes back with its code and state after sign-in, which stand nowhere in between.
func TestCallbackOfAToolSurvivesSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := demo.NewBrowser()
	const callback = "/oauth/callback/0123abcd?state=" + demo.DefaultMark + "state&code=" + demo.DefaultMark + "code%2Fx&iss=https%3A%2F%2Fas.example"
	page := w.signIn(b, callback, "alice")
	require.Contains(t, strings.ReplaceAll(page.Text, `\u0026`, "&"), callback)
	require.EqualValues(t, 1, w.reached.Load(), "nothing is reached before")
	for _, hop := range page.Hops[:len(page.Hops)-1] {
		if !strings.Contains(hop.URL, w.url+"/oauth/callback/") {
			require.NotContains(t, hop.URL, demo.DefaultMark+"state")
		}
	}
	require.NotContains(t, w.logs.String(), demo.DefaultMark)

	// The sealed cookie holds it where nobody reads it.
	again := demo.NewBrowser()
	again.StopAt = func(u *url.URL) bool { return u.Path == "/authorize" }
	stopped := w.open(again, callback)
	require.NotContains(t, stopped.URL.String(), demo.DefaultMark)
	require.Equal(t, "no-referrer", stopped.Header.Get("Referrer-Policy"))
	require.NotEmpty(t, again.Cookies(w.url))
	for _, c := range again.Cookies(w.url) {
		require.NotContains(t, c.Value, demo.DefaultMark)
	}
	for where, body := range storetest.Content(t, w.database) {
		require.NotContains(t, string(body), demo.DefaultMark, where)
		require.NotContains(t, string(body), w.session(b), where)
	}

	// One that fits no cookie is not lost silently: the person is signed in and the link is still good.
	long := demo.NewBrowser()
	page = w.signIn(long, callback+strings.Repeat("x", 3000), "bob")
	require.Equal(t, signin.Path, page.URL.Path)
}

func TestWhereASignInEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{"/signin?next=https://evil.example", "/signin?redirect_uri=//evil.example"} {
		b := demo.NewBrowser()
		page := w.signIn(b, path, "alice")
		require.Equal(t, w.url+path, page.URL.String())
	}
	for _, path := range []string{"//evil.example/connect", "/connect/../../evil.example"} {
		b := demo.NewBrowser()
		b.StopAt = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), w.url+"/") }
		require.True(t, strings.HasPrefix(w.open(b, path).URL.String(), w.url) || b.StopAt(w.open(b, path).URL))
		require.NotContains(t, w.open(b, path).URL.Host, "evil")
	}
}

func TestNobodyIsRedirectedButPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	html := []string{"text/html,application/xhtml+xml"}
	for name, tc := range map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"API":              {"GET", "/api", nil, 401},
		"API in a browser": {"GET", "/api", http.Header{"Accept": html}, 401},
		"post to the API":  {"POST", "/api", nil, 401},
		"form":             {"POST", "/connect", http.Header{"Accept": html, "Origin": {w.url}}, 401},
		"prefetch":         {"GET", link, http.Header{"Sec-Purpose": {"prefetch"}}, 503},
		"cookie of nobody": {"GET", "/api", http.Header{"Cookie": {"tarry-session=x"}}, 401},
		"two cookies":      {"GET", "/api", http.Header{"Cookie": {"tarry-session=x; tarry-session=y"}}, 401},
		"basic":            {"GET", "/api", http.Header{"Authorization": {"Basic eDp5"}}, 401},
		"token in a form":  {"GET", "/api?access_token=x", nil, 401},
		"a page":           {"GET", link, nil, 303},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := w.call(tc.method, tc.path, tc.header)
			require.Equal(t, tc.status, res.status, res.body)
			require.Zero(t, w.reached.Load())
			if tc.status == http.StatusUnauthorized {
				require.Contains(t, res.header.Get("WWW-Authenticate"), `Bearer realm="tarry"`)
				require.Empty(t, res.header.Values("Set-Cookie"))
			}
			if tc.path == "/api" {
				require.Equal(t, "application/json", res.header.Get("Content-Type"))
			}
		})
	}
}

// Several servers are one: what begins at one ends at another.
func TestServersShareSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first, _ := url.Parse(w.url)
	second := w.serve(func(c *signin.Config) { c.PublicURL = first })
	b := demo.NewBrowser()
	b.Header = http.Header{}
	answer := w.toCallback(b, link, "alice")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, second+answer, http.NoBody)
	require.NoError(t, err)
	r.Host = first.Host
	for _, c := range b.Cookies(w.url) {
		r.AddCookie(c)
	}
	res, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, link, res.Header.Get("Location"))
	for _, c := range res.Cookies() {
		if c.Name == "tarry-session" {
			require.True(t, c.HttpOnly)
			require.Equal(t, http.SameSiteLaxMode, c.SameSite)
			require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", http.Header{"Cookie": {"tarry-session=" + c.Value}}).status)
		}
	}
}

func TestUserIDs(t *testing.T) {
	t.Parallel()
	seen := map[string][2]string{}
	for _, p := range [][2]string{
		{"https://a", "b"},
		{"https://a", "bb"},
		{"https://ab", "b"},
		{"https://a", "B"},
		{"https://a/", "b"},
		{"", "https://ab"},
		{"https://ab", ""},
		{"proxy", "b"},
		{"https://a", "../x"},
		{"https://a", strings.Repeat("x", 255)},
	} {
		id := signin.UserID(p[0], p[1])
		require.NoError(t, agent.Owner{App: "app", User: id}.Validate())
		require.Regexp(t, `^u-[a-z2-7]{52}$`, id)
		require.NotContains(t, seen, id)
		seen[id] = p
		require.Equal(t, id, signin.UserID(p[0], p[1]))
	}
	require.Equal(t, "u-4lpeg5tp3p62tfhybmtdcrgrdoceeed5ehydvmir6f5nf6p27n3q", signin.UserID("https://login.example", "ann"), "ids never change")
}
