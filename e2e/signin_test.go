package e2e_test

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/server/signin"
)

const (
	signInSecret = demo.DefaultMark + "signin-client-secret"
	apiAudience  = "https://tarry.example/api"
)

// people is a world whose server signs people in at a provider of their own, apart from that of the tools.
type people struct {
	*world
	identity *demo.Provider
}

func newPeople(t *testing.T, o options, services string) *people {
	t.Helper()
	identity, err := demo.NewProvider(demo.ProviderConfig{Name: "Company ID", Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, identity.Start(""))
	t.Cleanup(func() { require.NoError(t, identity.Close()) })
	o.env = append(o.env,
		"TARRY_SIGNIN=oidc,jwt", "TARRY_OIDC_ISSUER="+identity.Issuer(), "TARRY_OIDC_CLIENT_ID=tarry", "TARRY_OIDC_CLIENT_SECRET="+signInSecret, "TARRY_OIDC_ALLOW=*",
		"TARRY_JWT_ISSUERS="+identity.Issuer(), "TARRY_JWT_AUDIENCE="+apiAudience)
	if services != "" {
		file := filepath.Join(t.TempDir(), "services.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(services, "ISSUER", identity.Issuer())), 0o600))
		o.env = append(o.env, "TARRY_SERVICES="+file)
	}
	p := &people{newWorld(t, o), identity}
	identity.AddClient(demo.Client{ID: "tarry", Secret: signInSecret, RedirectURIs: []string{p.URL() + signin.CallbackPath}})
	return p
}

// program is the API with the token of somebody's program; the name of the program stands in the token too.
func (p *people) program(sub string) apiClient {
	p.t.Helper()
	token, err := p.identity.Sign("at+jwt", map[string]any{"sub": sub, "client_id": sub, "aud": apiAudience})
	require.NoError(p.t, err)
	return apiClient{t: p.t, base: p.URL(), token: token}
}

// visitAs opens an address and signs in on the way to it, if the server asks.
func (p *people) visitAs(b *demo.Browser, address, user string) *demo.Page {
	p.t.Helper()
	page := p.visit(b, address)
	for range 2 {
		if !strings.HasPrefix(page.URL.String(), p.identity.URL()) {
			break
		}
		var err error
		if strings.Contains(page.Title, "Sign in") {
			page, err = b.SignIn(p.t.Context(), page, user, user+"-password")
		} else {
			page, err = b.Press(p.t.Context(), page, "approve")
		}
		require.NoError(p.t, err)
	}
	return page
}

// toTool presses the button of a link's page and logs in at the tool's provider; the answer is not opened.
func (p *people) toTool(b *demo.Browser, link, user, account string) string {
	p.t.Helper()
	page := p.visitAs(b, link, user)
	require.Equal(p.t, http.StatusOK, page.Status, page.Text)
	page, err := b.Press(p.t.Context(), page, "connect")
	require.NoError(p.t, err)
	b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.Path, "/oauth/callback/") }
	defer func() { b.StopAt = nil }()
	if strings.Contains(page.Title, "Sign in") {
		page, err = b.SignIn(p.t.Context(), page, account, account+"-password")
		require.NoError(p.t, err)
	}
	page, err = b.Press(p.t.Context(), page, "approve")
	require.NoError(p.t, err)
	require.True(p.t, strings.HasPrefix(page.URL.Path, "/oauth/callback/"), page.URL.Path)
	return page.URL.String()
}

func (p *people) signOut(b *demo.Browser) {
	p.t.Helper()
	page, err := b.Press(p.t.Context(), p.visit(b, p.URL()+signin.Path), "sign out")
	require.NoError(p.t, err)
	require.Equal(p.t, "Signed out", page.Title)
}

func (p *people) id(user string) string {
	return signin.UserID(p.identity.Issuer(), demo.Subject(user))
}

// tokenRequests counts what was sent for codes at the provider of the tools.
func (p *people) tokenRequests() int { return p.provider.Counts().Token["authorization_code"] }

// I7 with people who sign in, and nothing of it in any place that is kept.
func TestPeopleAndTheirLinks(t *testing.T) {
	t.Parallel()
	o := single(call("whoami") + text("{{response.whoami.user}}"))
	o.env = append(o.env, "TARRY_API_PREFIX=/api")
	p := newPeople(t, o, "")
	alice, bob := p.program(demo.Subject("alice")), p.program(demo.Subject("bob"))
	var who struct{ User, Name, Mode string }
	require.Equal(t, http.StatusOK, alice.call("GET", "/me", nil, &who))
	require.Equal(t, p.id("alice"), who.User)
	require.Equal(t, signin.ModeJWT, who.Mode)
	start := func(c apiClient) (runHandle, string) {
		r := c.startAs(signin.Me, "assistant", map[string]string{"task": "Go."})
		return r, p.waiting(r)
	}

	// Opened while signed out: sign-in, and exactly this page.
	r, link := start(alice)
	ann := demo.NewBrowser()
	page := p.visitAs(ann, link+"&state=x", "alice")
	require.Equal(t, link+"&state=x", page.URL.String())
	require.Contains(t, page.Title, "Connect to")

	// Somebody else's link tells nothing, and begins nothing.
	ben := demo.NewBrowser()
	page = p.visitAs(ben, link, "bob")
	require.Equal(t, http.StatusNotFound, page.Status)
	require.NotContains(t, page.Body, p.id("alice"))

	// A link sent on after the button was pressed, and the provider's own address sent on: refused, nothing is sent.
	answer := p.toTool(ann, link, "alice", "alice")
	p.refusedAt("alice's answer in bob's browser", ben, answer, r)
	p.refusedAt("alice's answer in a browser of nobody", func() *demo.Browser {
		b := demo.NewBrowser()
		p.visitAs(b, p.URL()+signin.Path, "alice")
		return b
	}(), answer, r)
	require.Zero(t, p.tokenRequests())

	// A different person in the very browser: refused, and the link is as good as before.
	answer = p.toTool(ann, link, "alice", "alice")
	p.signOut(ann)
	page = p.visitAs(ann, p.URL()+signin.Path, "bob")
	require.Contains(t, page.Text, p.id("bob"))
	p.refusedAt("bob in alice's browser", ann, answer, r)
	require.Zero(t, p.tokenRequests())
	p.signOut(ann)

	// A new session between link and callback: accepted, by subject.
	answer = p.toTool(ann, link, "alice", "alice")
	p.signOut(ann)
	p.visitAs(ann, p.URL()+signin.Path, "alice")
	require.Contains(t, p.visit(ann, answer).Title, "Connected")
	require.Equal(t, "done", p.finished(r).InvocationStatus)
	require.Equal(t, 1, p.tokenRequests())

	// No session at the callback: sign-in, and the same callback. First as somebody else: nothing happens.
	r, link = start(bob)
	answer = p.toTool(ben, link, "bob", "bob")
	p.signOut(ben)
	page = p.visitAs(ben, answer, "alice")
	require.GreaterOrEqual(t, page.Status, 400)
	require.Equal(t, 1, p.tokenRequests())
	p.signOut(ben)
	answer = p.toTool(ben, link, "bob", "bob")
	p.signOut(ben)
	page = p.visitAs(ben, answer, "bob")
	require.Equal(t, answer, page.URL.String())
	require.Contains(t, page.Title, "Connected")
	require.Equal(t, "done", p.finished(r).InvocationStatus)
	require.Equal(t, "bob", p.finished(r).Answer)

	p.isolated(t, r)
	p.keptSecret(t, ann, ben)
}

// isolated asks every route of the API for what belongs to bob: as alice, and as nobody.
func (p *people) isolated(t *testing.T, r runHandle) {
	t.Helper()
	alice, nobody := p.program(demo.Subject("alice")), apiClient{t: t, base: p.URL()}
	anybodys := map[string]bool{"/health": true, "/version": true, "/list-apps": true, "/me": true}
	owner := p.id("bob")
	fill := strings.NewReplacer("{app}", r.app, "{user}", owner, "{session}", r.id, "{call}", "c", "{event}", "v", "{request}", "q")
	body := map[string]any{
		"appName": r.app, "app_name": r.app, "userId": owner, "user_id": owner, "sessionId": r.id, "session_id": r.id, "task": "Go.", "confirmed": true,
		"nonce": "n", "newMessage": map[string]any{"role": "user", "parts": []any{map[string]any{"text": "Go."}}}, "action": "accept", "response": map[string]any{},
	}
	routes := apiRoutes(t)
	require.Greater(t, len(routes), 20)
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		path = fill.Replace(path)
		var in any
		if method != http.MethodGet {
			in = body
		} else if !strings.Contains(route, "{user}") {
			path += "?user=" + owner + "&all=true"
		}
		require.Equal(t, http.StatusUnauthorized, nobody.call(method, path, in, nil), "nobody: %s", route)
		require.Equal(t, http.StatusUnauthorized, nobody.call(method, "/api"+path, in, nil), "nobody: /api %s", route)
		require.Equal(t, alice.call(method, path, in, nil), alice.call(method, "/api"+path, in, nil), "alice: /api %s", route)
		got := alice.call(method, path, in, nil)
		if anybodys[strings.Fields(route)[1]] {
			require.Equal(t, http.StatusOK, got, route)
			continue
		}
		switch {
		case strings.Contains(route, "/debug/trace/"):
			require.Equal(t, http.StatusNotFound, got, "alice may read what bob did: %s", route)
			continue
		case ofApps(route): // what an app is, and not what somebody did with it
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound, http.StatusNotImplemented}, got, route)
			continue
		}
		require.Equal(t, http.StatusForbidden, got, "alice may reach what is bob's: %s", route)
	}
	// And by an id guessed under her own name.
	own := runHandle{alice, r.app, signin.Me, r.id}
	require.Equal(t, http.StatusNotFound, alice.call("GET", own.path("/status"), nil, nil))
	require.Equal(t, http.StatusNotFound, alice.call("GET", own.path("/events"), nil, nil))
}

// ofApps says whether a route of ADK's names nobody.
func ofApps(route string) bool {
	_, path, _ := strings.Cut(route, " ")
	for _, prefix := range []string{"/apps/", "/dev/", "/builder/", "/config/", "/agent-identity/", "/run_live"} {
		if strings.HasPrefix(path, prefix) && !strings.Contains(path, "{user}") {
			return true
		}
	}
	return false
}

// keptSecret looks for what sign-in must not leave behind.
func (p *people) keptSecret(t *testing.T, browsers ...*demo.Browser) {
	t.Helper()
	secrets := append(p.identity.Secrets().All(), p.provider.Secrets().All()...)
	for _, b := range browsers {
		for _, c := range b.Cookies(p.URL()) {
			secrets = append(secrets, c.Value)
		}
	}
	require.NoError(t, p.Stop(stack.All()...))
	stored := p.stored()
	for where, kept := range stored {
		require.False(t, bytes.Contains(kept, []byte(demo.DefaultMark)), "the canary's mark stands in %s: …%s…", where, around(kept, demo.DefaultMark))
		for _, secret := range secrets {
			require.False(t, bytes.Contains(kept, []byte(secret)), "a secret stands in %s: …%s…", where, around(kept, secret))
		}
	}
	require.Greater(t, len(stored), 4)
	require.Greater(t, len(secrets), 12)
}
