package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/server/accounts"
	"tarry/server/signin"
	"tarry/store/storetest"
)

// requestID is that of an HTTP request, in answers that report a problem.
var requestID = regexp.MustCompile(`\b[a-z2-7]{16}\b`)

// raw is the status and the body of a request.
func (c apiClient) raw(method, path string, in any) (int, string) {
	c.t.Helper()
	text, err := json.Marshal(in)
	require.NoError(c.t, err)
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewReader(text))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http().Do(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(body)
}

// belongings are what somebody has: a run that is over, one that waits, and an account.
type belongings struct {
	done, waits                   runHandle
	call, event, request, account string
}

func (p *people) belongings(user string) (b belongings) {
	p.t.Helper()
	c := p.program(demo.Subject(user))
	b.done = c.startAs(signin.Me, "assistant", map[string]string{"task": "Go, says " + user})
	browser := demo.NewBrowser()
	require.Contains(p.t, p.visit(browser, p.toTool(browser, p.waiting(b.done), user, user)).Title, "Connected")
	require.Equal(p.t, "done", p.finished(b.done).InvocationStatus)
	made := b.done.events()[1]
	b.call, b.event = made.Content.Parts[0].FunctionCall.ID, made.ID
	for _, name := range []string{"report.txt", "user:notes.txt"} {
		require.Equal(p.t, http.StatusOK, c.call("POST", b.done.path("/artifacts"), map[string]any{"filename": name, "artifact": map[string]any{"text": "says " + user}}, nil))
	}
	require.Equal(p.t, http.StatusOK, c.call("PATCH", "/apps/assistant/users/me/memory", map[string]any{"sessionId": b.done.id}, nil))
	var page accounts.Page
	require.Equal(p.t, http.StatusOK, c.call("GET", "/apps/assistant/users/me/accounts", nil, &page))
	require.Len(p.t, page.Accounts, 1)
	b.account = page.Accounts[0].ID
	b.waits = c.startAs(signin.Me, "second", map[string]string{"task": "Wait, says " + user})
	p.waiting(b.waits)
	b.request = b.waits.status().WaitingFor[0].Request
	return b
}

// Two people use the same apps. Under her own name, with every id of his, one finds nothing of the other's and changes nothing,
// and no answer tells an id that there is from one that there is not. What is secret stands in no answer, table, log or webhook.
func TestIsolation(t *testing.T) { isolation(t, "") }

func TestIsolationOnPostgres(t *testing.T) { isolation(t, storetest.Schema(t)) }

func isolation(t *testing.T, database string) {
	t.Helper()
	t.Parallel()
	h := &hooks{ids: map[string]int{}}
	endpoint := httptest.NewServer(h)
	t.Cleanup(endpoint.Close)
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, []byte("webhooks:\n- {name: ops, url: '"+endpoint.URL+"', secrets: ['${env:TARRY_SECRET_HOOK}'], apps: [assistant]}\n"), 0o600))
	o := single(call("whoami") + text("over"))
	o.database = database
	o.agents["second/root_agent.yaml"] = strings.Replace(assistant(""), "name: assistant", "name: second", 1)
	o.script += "  - agent: second\n    steps:\n" + indent(call("whoami")+text("over"), "      ")
	o.env = append(o.env, "TARRY_WEBHOOKS="+file, "TARRY_SECRET_HOOK="+hookSecret)
	p := newPeople(t, o, "")
	p.belongings("alice")
	bobs := p.belongings("bob")
	alice, bob := p.program(demo.Subject("alice")), p.program(demo.Subject("bob"))
	before := bob.events(t, bobs)

	// What is there for him is not there for her (see the routes below).
	status, text := bob.raw("GET", bobs.done.path("/artifacts/report.txt/versions/0"), nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "says bob")
	kept := map[string]string{"his artifact": text}
	his := []string{p.id("bob"), bobs.done.id, bobs.waits.id, bobs.call, bobs.event, bobs.request, bobs.account, "says bob"}
	for _, query := range []string{"/runs?all=true", "/logins?all=true", "/accounts", "/audit", "/runs?user=me&all=true", "/audit?user=me&session=" + bobs.done.id + "&request=" + bobs.request} {
		_, body := alice.raw("GET", query, nil)
		kept["GET "+query] = body
		for _, word := range his {
			require.NotContains(t, body, word, query)
		}
	}
	p.strangersRun(alice, bobs)
	routes := apiRoutes(t)
	// Those that make something under the name they are given come last: what they make is hers.
	slices.SortStableFunc(routes, func(a, b string) int { return makes(a) - makes(b) })
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if path == "/metrics" || strings.HasPrefix(path, "/run") && method == http.MethodPost || strings.HasSuffix(path, "/runs") && method == http.MethodPost {
			continue // a run of her own begins
		}
		for _, app := range []string{"assistant", "second"} {
			ask := func(session, call, event, request, account string) (int, string) {
				fill := strings.NewReplacer("{app}", app, "{user}", signin.Me, "{session}", session, "{call}", call, "{event}", event, "{request}", request, "{account}", account, "{name...}", "report.txt/versions/0")
				status, body := alice.raw(method, fill.Replace(path), map[string]any{
					"appName": app, "userId": p.id("alice"), "sessionId": session, "session": session, "task": "Go.", "confirmed": true, "nonce": request, "secret": "s3cr3t-s3cr3t",
					"newMessage": map[string]any{"role": "user", "parts": []any{map[string]any{"text": "Go."}}}, "response": map[string]any{}, "stateDelta": map[string]any{"mark": "hers"},
					"filename": "report.txt", "artifact": map[string]any{"text": "hers"},
				})
				kept[route+" "+app+" "+session] = body
				body = requestID.ReplaceAllString(body, "RID")
				return status, strings.NewReplacer(session, "SESSION", call, "CALL", event, "EVENT", request, "REQUEST", account, "ACCOUNT").Replace(body)
			}
			session := bobs.done.id
			if app == "second" {
				session = bobs.waits.id
			}
			there, body := ask(session, bobs.call, bobs.event, bobs.request, bobs.account)
			missing, same := ask("made-up-session", "made-up-call", "made-up-event", "adk-made-up", "made-up-account")
			require.Equal(t, missing, there, "%s tells whether an id exists", route)
			if there >= 300 {
				require.Equal(t, same, body, "%s tells whether an id exists", route)
				continue
			}
			for _, word := range his {
				if word != session { // a session of hers may be called so
					require.NotContains(t, body, word, route)
				}
			}
		}
	}
	p.twins(alice, bobs)
	require.Equal(t, before, bob.events(t, bobs), "nothing of his changed")
	require.Equal(t, "waiting_credential", bobs.waits.status().State, "nobody woke it")
	_, again := bob.raw("GET", bobs.done.path("/artifacts/report.txt"), nil)
	require.Equal(t, text, again)
	_, names := bob.raw("GET", bobs.done.path("/artifacts"), nil)
	require.JSONEq(t, `["report.txt","user:notes.txt"]`, names)
	status, page := bob.raw("GET", "/apps/assistant/users/me/accounts", nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, bobs.account)
	for _, of := range []string{"/status", "/events", "/history"} {
		_, kept["bob's "+of] = bob.raw("GET", bobs.done.path(of), nil)
	}
	kept["bob's accounts"] = page
	_, kept["bob's audit"] = bob.raw("GET", "/audit?user=me", nil)
	h.mu.Lock()
	kept["webhooks"] = string(h.bodies)
	h.mu.Unlock()
	require.NotEmpty(t, kept["webhooks"])

	require.NoError(t, p.Stop(stack.All()...))
	all := p.Database()
	if database != "" {
		all = database
	}
	for where, body := range storetest.Content(t, all) {
		kept[where] = string(body)
	}
	for _, name := range stack.All() {
		body, err := os.ReadFile(p.LogFile(name))
		require.NoError(t, err)
		kept[string(name)] = string(body)
	}
	secrets := slices.Concat(p.identity.Secrets().All(), p.provider.Secrets().All(), []string{demo.DefaultMark, hookSecret, alice.token, bob.token, "search_path"})
	require.Greater(t, len(secrets), 20)
	for where, body := range kept {
		for _, secret := range secrets {
			if strings.Contains(body, secret) { // whole bodies would not help to read it
				require.Failf(t, "a secret stands in "+where, "…%s…", around([]byte(body), secret))
			}
		}
	}
}

func makes(route string) int {
	if strings.HasPrefix(route, "POST ") && (strings.HasSuffix(route, "/sessions") || strings.HasSuffix(route, "/sessions/{session}")) {
		return 1
	}
	return 0
}

// events is what bob's sessions hold.
func (c apiClient) events(t *testing.T, b belongings) [2]string {
	t.Helper()
	_, done := c.raw("GET", b.done.path("/events"), nil)
	_, waits := c.raw("GET", b.waits.path("/events"), nil)
	return [2]string{done, waits}
}
