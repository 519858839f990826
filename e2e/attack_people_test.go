package e2e_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/server/signin"
)

// answered is a response whose body has been read.
type answered struct {
	StatusCode int
	Header     http.Header
}

// answerOf sends a request as another program, or a page of another site, makes it.
func (p *people) answerOf(method, path, body string, header http.Header) (answered, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.URL()+path, strings.NewReader(body))
	require.NoError(p.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return answered{resp.StatusCode, resp.Header}, string(text)
}

// cookies is the Cookie header of a browser, with the named ones alone; all of them where none is named.
func (p *people) cookies(b *demo.Browser, prefixes ...string) string {
	var out []string
	for _, c := range b.Cookies(p.URL()) {
		fits := len(prefixes) == 0
		for _, prefix := range prefixes {
			fits = fits || strings.HasPrefix(c.Name, prefix)
		}
		if fits {
			out = append(out, c.Name+"="+c.Value)
		}
	}
	return strings.Join(out, "; ")
}

// People at a server with sign-in, attacked in the ways of the callback table: forms of other sites, planted and swapped cookies,
// answers of the sign-in in other browsers, addresses to go on to, headers of proxies that there are none of. Nothing of it
// changes anything, and the login that was under way then succeeds.
func TestAttacksOnPeople(t *testing.T) {
	t.Parallel()
	p := newPeople(t, single(call("whoami")+text("{{response.whoami.user}}")), shopOnly)
	alice := p.program(demo.Subject("alice"))
	r := alice.startAs(signin.Me, "assistant", map[string]string{"task": "Go."})
	link := p.waiting(r)
	ann, ben := demo.NewBrowser(), demo.NewBrowser()
	answer := p.toTool(ann, link, "alice", "alice")
	p.visitAs(ben, p.URL()+signin.Path, "bob")
	session := p.cookies(ann, "tarry-session")
	require.NotEmpty(t, session)
	signedIn := func(cookie string) int {
		resp, _ := p.answerOf("GET", "/me", "", http.Header{"Cookie": {cookie}})
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, signedIn(session))

	// Forms of other sites, of frames without an origin, and without the token of a page.
	id := asks(r.events())[0]
	for path, form := range map[string]string{
		"/connect": "request=" + id, "/connect/answer": "request=" + id + "&action=decline", "/connect/account": "request=" + id + "&action=replace&flow=f&replaces=g",
		"/accounts": "app=assistant&user=" + p.id("alice") + "&account=a", signin.SignOutPath: "x=1",
	} {
		for name, header := range map[string]http.Header{
			"another site": {"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}, "a sandboxed frame": {"Origin": {"null"}, "Sec-Fetch-Site": {"cross-site"}},
			"a sibling": {"Origin": {"http://evil.localhost"}, "Sec-Fetch-Site": {"same-site"}}, "no token": {"Origin": {p.URL()}}, "another's token": {"Origin": {p.URL()}},
		} {
			body := form
			if name == "another's token" {
				body += "&csrf=" + strings.Repeat("A", 43)
			}
			header.Set("Cookie", p.cookies(ann))
			resp, text := p.answerOf("POST", path, body, header)
			require.Equal(t, http.StatusForbidden, resp.StatusCode, "%s from %s: %s", path, name, text)
		}
	}
	for _, path := range []string{r.path("/cancel"), "/run", "/apps/assistant/users/me/runs"} {
		resp, _ := p.answerOf("POST", path, "", http.Header{"Cookie": {session}, "Origin": {"https://evil.example"}, "Content-Type": {"application/json"}})
		require.Equal(t, http.StatusForbidden, resp.StatusCode, path)
	}
	require.Equal(t, http.StatusOK, signedIn(session), "still signed in")
	require.Equal(t, "waiting_credential", r.status().State)

	// Cookies: one that is there twice could be planted, and none does the work of another.
	require.Equal(t, http.StatusUnauthorized, signedIn(session+"; "+p.cookies(ben, "tarry-session")))
	_, value, _ := strings.Cut(session, "=")
	for _, c := range ann.Cookies(p.URL()) {
		if c.Name != "tarry-session" {
			require.Equal(t, http.StatusUnauthorized, signedIn("tarry-session="+c.Value), c.Name)
		}
	}
	back, err := url.Parse(with(t, answer, func(q url.Values) { q.Set("code", "a-code-that-is-burnt-here") }))
	require.NoError(t, err)
	for _, c := range ann.Cookies(p.URL()) {
		if strings.HasPrefix(c.Name, "tarry-") && c.Name != "tarry-session" && c.Name != "tarry-csrf" {
			resp, _ := p.answerOf("GET", back.RequestURI(), "", http.Header{"Cookie": {session + "; " + c.Name + "=" + value}})
			require.NotContains(t, []int{http.StatusOK, http.StatusSeeOther}, resp.StatusCode, "a session's cookie as %s", c.Name)
		}
	}
	require.Zero(t, p.tokenRequests())

	// Sign-in: the attacker's answer in the victim's browser signs nobody in, nor does the attempt of one answer another's.
	begin := func(b *demo.Browser, user string) *url.URL {
		b.StopAt = func(u *url.URL) bool { return u.Path == signin.CallbackPath }
		defer func() { b.StopAt = nil }()
		return p.visitAs(b, p.URL()+"/accounts", user).URL
	}
	eve, victim := demo.NewBrowser(), demo.NewBrowser()
	evil, own := begin(eve, "bob"), begin(victim, "alice")
	page := p.visit(victim, evil.String())
	require.Equal(t, http.StatusForbidden, page.Status)
	crossed := *own
	query := own.Query()
	query.Set("code", evil.Query().Get("code"))
	crossed.RawQuery = query.Encode()
	require.Equal(t, http.StatusForbidden, p.visit(victim, crossed.String()).Status, "another's code: the verifier is not its own")
	require.Equal(t, http.StatusForbidden, p.visit(victim, own.String()).Status, "the state is spent")
	swapped := strings.ReplaceAll(p.cookies(eve, "tarry-signin-"), "tarry-signin-", "tarry-session=x; tarry-signin-")
	resp, _ := p.answerOf("GET", own.RequestURI(), "", http.Header{"Cookie": {swapped}})
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Empty(t, p.cookies(victim, "tarry-session"))

	// Nowhere but to pages of ours, whatever an address says.
	for _, address := range []string{
		"/signin?next=https://evil.example", "/signin?redirect_uri=https://evil.example", "/signin?return_to=//evil.example", "/accounts?redirect_uri=https://evil.example",
		"/connect?request=" + id + "&redirect_uri=https://evil.example/&return=//evil.example", "//evil.example/connect", "/connect/%2e%2e//evil.example", "/dev-ui//evil.example",
		"/signout?post_logout_redirect_uri=https://evil.example",
	} {
		b := demo.NewBrowser()
		var hops []string
		b.StopAt = func(u *url.URL) bool {
			hops = append(hops, u.Host)
			return u.Host != back.Host
		}
		_, err := b.Open(t.Context(), p.URL()+address)
		require.NoError(t, err, address)
		for _, host := range hops {
			require.NotContains(t, host, "evil.example", address)
		}
		resp, text := p.answerOf("GET", address, "", http.Header{"Cookie": {session}})
		location, err := url.Parse(resp.Header.Get("Location"))
		require.NoError(t, err)
		require.NotEqual(t, "evil.example", location.Hostname(), address)
		require.NotContains(t, text, `href="https://evil.example`, address)
	}

	// What any page says to browsers, errors too.
	for _, path := range []string{signin.Path, signin.SignOutPath, "/accounts", "/connect?request=" + id, "/connect?request=adk-none", "/oauth/callback/0a?code=x&state=y", signin.CallbackPath + "?code=x&state=y"} {
		resp, _ := p.answerOf("GET", path, "", http.Header{"Cookie": {session}, "Accept": {"text/html"}})
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
		require.Equal(t, "no-referrer", resp.Header.Get("Referrer-Policy"), path)
		if resp.StatusCode != http.StatusSeeOther {
			require.Equal(t, "no-store", resp.Header.Get("Cache-Control"), path)
		}
	}

	// Words of proxies that there are none of, and of people about whom they are.
	for _, header := range []http.Header{
		{"X-Forwarded-User": {demo.Subject("alice")}},
		{"X_forwarded_user": {demo.Subject("alice")}},
		{"Remote-User": {p.id("alice")}},
		{"Authorization": {"Basic YWxpY2U6YWxpY2UtcGFzc3dvcmQ="}},
		{"Authorization": {"Bearer x", "Bearer y"}},
		{"Cookie": {"tarry-session=" + p.id("alice")}},
	} {
		resp, _ := p.answerOf("GET", "/me", "", header)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode, header)
	}
	require.Equal(t, http.StatusForbidden, alice.call("GET", "/metrics", nil, nil))
	resp, _ = p.answerOf("GET", "/metrics", "", http.Header{"Cookie": {session}})
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "people read no metrics")
	require.Equal(t, http.StatusOK, p.program("shop-backend").call("GET", "/metrics", nil, nil))

	// me is whoever asks, also where it is a filter.
	var log struct{ Entries []struct{ User string } }
	require.Equal(t, http.StatusOK, alice.call("GET", "/audit?user=me", nil, &log))
	require.NotEmpty(t, log.Entries)
	for _, e := range log.Entries {
		require.Equal(t, p.id("alice"), e.User)
	}
	require.Equal(t, http.StatusForbidden, p.program("shop-backend").call("GET", "/audit?user=me", nil, nil))
	require.Equal(t, http.StatusForbidden, alice.call("GET", "/audit?user=ME", nil, nil))

	require.Contains(t, p.visit(ann, answer).Title, "Connected")
	require.Equal(t, "done", p.finished(r).InvocationStatus)
	require.Equal(t, 1, p.tokenRequests())
	p.keptSecret(t, ann, ben, eve, victim)
}
