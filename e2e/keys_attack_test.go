package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// keyApps are apps whose tools want keys: those of one app share them, those of two apps never do, and a definition that names
// another's credential_key and issuer with a server of its own is sent nothing.
func keyApps(server, evil *demo.KeyServer) options {
	const scheme = "{type: apiKey, in: query, name: api_key}"
	origin := strings.TrimSuffix(server.URL(), "/mcp")
	o := single(call("list_tickets") + text("ok"))
	o.env = []string{"TARRY_SECRET_KEY=" + ownKey}
	o.agents["keys/root_agent.yaml"] = "agent_class: SequentialAgent\nname: both\nsub_agents:\n  - config_path: one.yaml\n  - config_path: two.yaml\n"
	for app, agents := range map[string][]string{"keys": {"one", "two"}, "other": {"other"}, "thief": {"thief"}, "own": {"own"}, "strict": {"strict"}} {
		for _, name := range agents {
			address, more, file := server.URL(), "      credential_key: planner\n", "root_agent.yaml"
			switch app {
			case "keys":
				file = name + ".yaml"
			case "thief":
				address, more = evil.URL(), more+"      tarry: {issuer: \""+origin+"\"}\n"
			case "strict":
				address, more = evil.URL(), more+"      tarry: {resource: \""+server.URL()+"\"}\n"
			case "own":
				more = "      auth_credential: {auth_type: apiKey, api_key: \"${env:TARRY_SECRET_KEY}\"}\n"
			}
			o.agents[app+"/"+file] = keyAgent(name, address, scheme, more)
			o.script += "  - agent: " + name + "\n    steps:\n" + indent(call("whoami")+text(name+": {{response.whoami}}")+call("leak")+text("again"), "      ")
		}
	}
	return o
}

const (
	annKey = demo.DefaultMark + "key-of-ann&more=1" // what a query must escape
	ownKey = demo.DefaultMark + "key-of-the-app"
)

// A client of ADK sends the key in its reply; it goes into the vault, and the run goes on.
func TestKeysInADKReplies(t *testing.T) {
	t.Parallel()
	server, evil := keyServer(t, demo.KeyConfig{In: "query", Name: "api_key"}), keyServer(t, demo.KeyConfig{In: "query", Name: "api_key"})
	server.Accept("ann", annKey)
	server.Add("the app", ownKey)
	w := newWorld(t, keyApps(server, evil))
	in := func(app, user, session string, parts ...any) map[string]any {
		m := message(session, parts...)
		m["appName"], m["userId"] = app, user
		return m
	}
	open := func(app, user string) (string, *function) {
		t.Helper()
		var session struct{ ID string }
		require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/"+app+"/users/"+user+"/sessions", nil, &session))
		status, events := w.api.sse(in(app, user, session.ID, map[string]string{"text": "Who am I?"}), false)
		require.Equal(t, http.StatusOK, status)
		return session.ID, events[len(events)-1].Content.Parts[0].FunctionCall
	}
	reply := func(asked *function, response any) map[string]any {
		return map[string]any{"functionResponse": map[string]any{"id": asked.ID, "name": asked.Name, "response": response}}
	}
	credential := func(c map[string]any) map[string]any { return map[string]any{"exchangedAuthCredential": c} }

	session, asked := open("keys", "ann")
	mine := runHandle{w.api, "keys", "ann", session}
	bens, hisCall := open("keys", "ben")
	before := w.counts()
	for name, c := range map[string]struct {
		user, session string
		response      any
		call          *function
	}{
		"other kind":         {"ann", session, credential(map[string]any{"authType": "http", "http": map[string]any{"scheme": "bearer", "credentials": map[string]any{"token": annKey}}}), asked},
		"other place":        {"ann", session, map[string]any{"authScheme": map[string]any{"type": "apiKey", "in": "header", "name": "X-Evil"}, "exchangedAuthCredential": map[string]any{"authType": "apiKey", "apiKey": annKey}}, asked},
		"in the raw one":     {"ann", session, map[string]any{"rawAuthCredential": map[string]any{"authType": "apiKey", "apiKey": annKey}}, asked},
		"an oauth code":      {"ann", session, credential(map[string]any{"oauth2": map[string]any{"authResponseUri": "https://evil.example/?code=" + demo.DefaultMark}}), asked},
		"line break":         {"ann", session, credential(map[string]any{"apiKey": "a\r\nX-Evil: 1"}), asked},
		"too long":           {"ann", session, credential(map[string]any{"apiKey": strings.Repeat("k", 10_000)}), asked},
		"somebody else's":    {"ben", bens, credential(map[string]any{"apiKey": annKey}), asked},
		"the tool call's id": {"ann", session, credential(map[string]any{"apiKey": annKey}), &function{ID: "adk-unknown", Name: asked.Name}},
	} {
		require.Equal(t, http.StatusBadRequest, w.api.call("POST", "/run", in("keys", c.user, c.session, reply(c.call, c.response)), nil), name)
		require.Equal(t, before, w.counts(), name)
	}
	var out struct{}
	require.Equal(t, http.StatusNotFound, w.api.call("POST", "/apps/keys/users/ben/sessions/"+bens+"/keys/"+asked.ID, map[string]string{"secret": annKey}, &out))
	require.Equal(t, http.StatusUnprocessableEntity, w.api.call("POST", mine.path("/keys/"+asked.ID), map[string]string{"secret": "a", "username": "b"}, &out))
	require.Equal(t, before, w.counts())
	require.Empty(t, server.Requests())

	// Nothing of a key is taken for a login.
	login, loginCall := open("assistant", "ann")
	before = w.counts()
	for _, response := range []any{
		credential(map[string]any{"authType": "apiKey", "apiKey": annKey}),
		map[string]any{"apiKey": annKey},
		credential(map[string]any{"authType": "http", "http": map[string]any{"scheme": "bearer", "credentials": map[string]any{"token": annKey}}}),
	} {
		require.Equal(t, http.StatusBadRequest, w.api.call("POST", "/run", in("assistant", "ann", login, reply(loginCall, response)), nil))
	}
	require.Equal(t, http.StatusNotFound, w.api.call("POST", "/apps/assistant/users/ann/sessions/"+login+"/keys/"+loginCall.ID, map[string]string{"secret": annKey}, &out))
	require.Equal(t, before, w.counts())

	// The right one, as ADK's clients send it: the config that came, filled in.
	config := asked.Args["authConfig"].(map[string]any)
	config["exchangedAuthCredential"].(map[string]any)["apiKey"] = annKey
	status, events := w.api.sse(in("keys", "ann", session, reply(asked, config)), false)
	require.Equal(t, http.StatusOK, status)
	last := events[len(events)-1]
	require.Equal(t, "two", last.Author)
	require.Contains(t, last.Content.Parts[0].Text, "you are ann", "both agents use the one key")
	require.Len(t, asks(mine.events()), 1)
	require.Equal(t, "waiting_credential", runHandle{w.api, "keys", "ben", bens}.status().State, "it is nobody else's")
	require.Equal(t, http.StatusOK, w.api.call("POST", "/run", in("keys", "ann", session, reply(asked, config)), nil), "a repeat changes nothing")

	// Another person gives none.
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/keys/users/ben/sessions/"+bens+"/keys/"+hisCall.ID, map[string]any{"decline": true}, &out))
	require.True(t, w.finished(runHandle{w.api, "keys", "ben", bens}).Denied)

	// Another app asks for itself, and one that names the first one's credential gets nothing for its own server.
	other := w.api.startAs("ann", "other", map[string]string{"task": "Who am I?"})
	thief := w.api.startAs("ann", "thief", map[string]string{"task": "Who am I?"})
	strict := w.api.startAs("ann", "strict", map[string]string{"task": "Who am I?"})
	own := w.api.startAs("ann", "own", map[string]string{"task": "Who am I?"})
	w.waiting(other)
	page, err := w.open(w.waiting(thief))
	require.NoError(t, err)
	require.Contains(t, page.Text, strings.TrimPrefix(strings.TrimSuffix(evil.URL(), "/mcp"), "http://"))
	require.NotContains(t, page.Text, strings.TrimPrefix(strings.TrimSuffix(server.URL(), "/mcp"), "http://"))
	w.finished(strict)
	require.Empty(t, asks(strict.events()), "nobody is asked for a key that would not be sent")
	require.Contains(t, w.finished(own).Answer, "you are the app")
	require.Empty(t, asks(own.events()))
	b := demo.NewBrowser()
	page, err = b.Open(t.Context(), w.waiting(other))
	require.NoError(t, err)
	page, err = b.Press(t.Context(), page, "decline")
	require.NoError(t, err)
	require.Equal(t, "Declined", page.Title)
	require.True(t, w.finished(other).Denied)
	require.Empty(t, evil.Requests())

	// A server that redirects elsewhere takes the key nowhere.
	server.Redirect(evil.URL())
	moved := w.api.startAs("ann", "keys", map[string]string{"task": "And now?"})
	require.Equal(t, "done", w.finished(moved).InvocationStatus)
	require.Empty(t, evil.Requests())
	w.checkTyped(mine, moved, own, other, thief)
}

// The form of a key is sent by the person's own page alone, and for the request that the page showed.
func TestKeyFormAttacks(t *testing.T) {
	t.Parallel()
	server, evil := keyServer(t, demo.KeyConfig{In: "query", Name: "api_key"}), keyServer(t, demo.KeyConfig{In: "query", Name: "api_key"})
	w := newWorld(t, keyApps(server, evil))
	anns, bens := w.api.startAs("ann", "other", map[string]string{"task": "Go."}), w.api.startAs("ben", "thief", map[string]string{"task": "Go."})
	link, his := w.waiting(anns), w.waiting(bens)
	request := func(link string) string {
		u, err := url.Parse(link)
		require.NoError(t, err)
		return u.Query().Get("request")
	}
	b := demo.NewBrowser()
	page, err := b.Open(t.Context(), his)
	require.NoError(t, err)
	require.Len(t, page.Forms, 1)
	before := w.counts()
	form := func(request, csrf string, more ...string) string {
		v := url.Values{"request": {request}, "csrf": {csrf}, "action": {"accept"}, "key": {annKey}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v.Encode()
	}
	token := page.Forms[0].Fields.Get("csrf")
	require.NotEmpty(t, token)
	kind := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": w.URL()}
	w.strike("without a token", attack{method: "POST", path: "/connect/answer", body: form(request(link), ""), header: kind, status: 403})
	w.strike("token of another browser", attack{method: "POST", path: "/connect/answer", body: form(request(his), token), header: kind, status: 403})
	w.strike("from another site", attack{method: "POST", path: "/connect/answer", body: form(request(his), token), header: map[string]string{"Content-Type": kind["Content-Type"], "Origin": "https://evil.example"}, status: 403})
	w.strike("in the address", attack{method: "GET", path: "/connect?" + form(request(link), token), status: 200})
	// The token of his page for her request, in the browser that has it.
	sent, err := b.Submit(t.Context(), page, page.Forms[0], map[string]string{"request": request(link), "key": "not-for-her-request"}, page.Forms[0].Button("accept"))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, sent.Status)
	sent, err = b.Submit(t.Context(), page, page.Forms[0], map[string]string{"key": "two\nlines"}, page.Forms[0].Button("accept"))
	require.NoError(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, sent.Status)
	require.Equal(t, before, w.counts())
	require.Contains(t, w.give(his, "", "key-of-ben").Title, "Saved")
	w.eventually("nothing comes", func() bool { return len(evil.Requests()) > 0 })
	require.Equal(t, "key-of-ben", evil.Requests()[0].Secret)
	require.Equal(t, "waiting_credential", anns.status().State)
}
