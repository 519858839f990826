package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
	"tarry/internal/demo"
)

// refusedAt opens a callback in a browser and expects that nothing comes of it.
func (w *world) refusedAt(what string, b *demo.Browser, address string, r runHandle) {
	w.t.Helper()
	page := w.visit(b, address)
	require.GreaterOrEqual(w.t, page.Status, 400, what)
	require.NotContains(w.t, page.Title, "Connected", what)
	require.Equal(w.t, "waiting_credential", r.status().State, what)
}

// Two people, two providers: answers of one that are brought to the other, in every direction, connect nobody, and no code
// is sent anywhere (I7; pitfalls M30, M33).
func TestMixedUpLogins(t *testing.T) {
	t.Parallel()
	second, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{NoIss: true, NoIssMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, second.Start(""))
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	other, err := demo.NewMCPServer(demo.MCPConfig{Provider: second})
	require.NoError(t, err)
	require.NoError(t, other.Start(""))
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	steps := "    steps: [{calls: [{name: whoami, args: {}}]}, {text: \"{{response.whoami.user}}\"}]\n"
	w := newWorld(t, options{
		faults: demo.Faults{NoIss: true, NoIssMetadata: true}, // servers that say nothing about who they are
		agents: map[string]string{
			"first/root_agent.yaml":  toolset("first", "${var:MCP_URL}", ""),
			"second/root_agent.yaml": toolset("second", other.URL(), ""),
		},
		script: "agents:\n  - agent: first\n" + steps + "  - agent: second\n" + steps,
	})
	a := w.api.startAs("ann", "first", map[string]string{"task": "Go."})
	b := w.api.startAs("ben", "first", map[string]string{"task": "Go."})
	c := w.api.startAs("ann", "second", map[string]string{"task": "Go."})
	linkA, linkB, linkC := w.waiting(a), w.waiting(b), w.waiting(c)
	annA, toA := w.toCallback(linkA)
	benB, toB := w.toCallback(linkB)
	annC, toC := w.toCallback(linkC)
	value := func(address, name string) string {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return u.Query().Get(name)
	}
	path := func(address string) string { return address[:strings.Index(address, "?")] }
	require.NotEqual(t, path(toA), path(toC), "each issuer has a path")
	require.Equal(t, path(toA), path(toB))

	// Consent phishing and fixation: the link, the provider's page or the answer of one in the browser of another.
	w.refusedAt("ann's answer in ben's browser", benB, toA, a)
	w.refusedAt("ben's answer in ann's browser", annA, toB, b)
	// Login CSRF and code injection: the attacker's code in the victim's login. The code was seen before, so it is burnt.
	w.refusedAt("ben's code with ann's state", demo.NewBrowser(), with(t, toA, func(q url.Values) { q.Set("code", value(toB, "code")) }), a)
	// Mix-up: an answer on another issuer's path, and a state of the other login on ours.
	w.refusedAt("the second's answer on the first's path", annC, path(toA)+toC[strings.Index(toC, "?"):], c)
	w.refusedAt("the first's answer on the second's path", annA, path(toC)+toA[strings.Index(toA, "?"):], a)
	w.refusedAt("the second's state on the first's path", annC, with(t, path(toA)+"?", func(q url.Values) {
		q.Set("state", value(toC, "state"))
		q.Set("code", value(toA, "code"))
	}), c)
	w.refusedAt("a denial on the wrong path", annA, with(t, path(toC)+"?", func(q url.Values) {
		q.Set("state", value(toA, "state"))
		q.Set("error", "access_denied")
	}), a)
	require.Zero(t, w.provider.Counts().Token["authorization_code"])
	require.Zero(t, second.Counts().Token["authorization_code"])

	// A code of somebody else's login that nobody has seen goes out, and is refused for its verifier (RFC 7636).
	_, toM := w.toCallback(linkB)
	victim, toV := w.toCallback(linkA)
	w.refusedAt("an unseen code of another login", victim, with(t, toV, func(q url.Values) { q.Set("code", value(toM, "code")) }), a)
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
	require.Zero(t, w.provider.Counts().TokenOK["authorization_code"])
	require.Equal(t, []string{"0"}, w.query(`SELECT COUNT(*) FROM grants`))

	// The same links still work, for each their own.
	w.login(linkA)
	w.loginAs(linkB, "bob")
	page, err := demo.NewBrowser().Login(t.Context(), linkC, "bob", "bob-password")
	require.NoError(t, err)
	require.Contains(t, page.Title, "Connected")
	require.Contains(t, w.finished(a).Answer, "alice")
	require.Contains(t, w.finished(b).Answer, "bob")
	require.Contains(t, w.finished(c).Answer, "bob")
	// A replay the next day shows the outcome and sends nothing.
	sent := w.provider.Counts().Token["authorization_code"]
	require.Contains(t, strings.ToLower(w.visit(annA, toA).Title), "connected")
	require.Equal(t, sent, w.provider.Counts().Token["authorization_code"])
}

// A definition calls its own provider by the issuer of an honest one and sends the person there with the honest client
// (RFC 9700 section 4.4.1, COAT): the honest provider does not know the address to return to, and no code comes about.
func TestProviderUnderAnothersName(t *testing.T) {
	t.Parallel()
	const secret = demo.DefaultMark + "client-secret"
	honest, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, honest.Start(""))
	t.Cleanup(func() { require.NoError(t, honest.Close()) })
	evil := newHostile(t)
	evil.tricks["authorize"] = trick{serve: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, honest.AuthorizeURL()+"?"+r.URL.RawQuery, http.StatusFound) //nolint:gosec // the attack itself
	}}
	written := func(authorize, token string) string {
		return explicit("oauth2", "issuer_url: "+honest.Issuer()+"\nflows:\n  authorizationCode:\n    authorizationUrl: "+authorize+"\n    tokenUrl: "+token+"\n    scopes:\n      tickets:read: read\n")
	}
	o := options{
		provider: honest, env: []string{"TARRY_SECRET_CLIENT=" + secret},
		agents: map[string]string{
			"honest/root_agent.yaml": toolset("honest", "${var:MCP_URL}", written(honest.AuthorizeURL(), honest.TokenURL())),
			"evil/root_agent.yaml":   toolset("evil", evil.URL+"/server", written(evil.URL+"/authorize", evil.URL+"/token")),
		},
		script: "agents:\n  - agent: honest\n    steps: [{text: ok}]\n  - agent: evil\n    steps: [{text: ok}]\n",
	}
	honest.SetFaults(func(f *demo.Faults) { f.ResourceOptional = true })
	w := newWorld(t, o)
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.AnyAudience = true })
	honest.AddClient(demo.Client{
		ID: "by-hand", Secret: secret, AuthMethod: demo.AuthBasic, RedirectURIs: []string{w.URL() + oauth.CallbackPath(honest.Issuer())},
	})
	b := demo.NewBrowser()
	page, err := b.Press(t.Context(), w.visit(b, w.waiting(w.api.start("evil", "Go."))), "connect")
	require.NoError(t, err)
	require.Contains(t, page.Title, "Unknown return address")
	require.Zero(t, honest.Counts().Approvals)
	require.Empty(t, evil.came("POST /token"))
	require.Empty(t, evil.gotTokens())

	r := w.api.start("honest", "Go.")
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
}
