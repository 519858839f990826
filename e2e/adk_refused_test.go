package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// What a client may not send: each is refused on both routes, in words that name the link or the right id; the request stays
// pending, no provider and no address of the client's is asked, and nothing of the body is kept or logged (P24, P25, P34).
func TestADKRepliesThatAreRefused(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-of-the-client"
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) }))
	t.Cleanup(evil.Close)
	w := variantWorld(t, call("list_tickets")+text("Four tickets."))
	mine, another, bens := w.adkSession("ann"), w.adkSession("ann"), w.adkSession("ben")
	events := mine.say("Which tickets?")
	f, elsewhere, his := mine.requested(events)[0], another.requested(another.say("And which?"))[0], bens.requested(bens.say("Which are mine?"))[0]
	toolCall := f.Args["functionCallId"].(string)
	changed := func(change func(config, oauth map[string]any)) any {
		config, oauth := f.config()
		change(config, oauth)
		return config
	}
	flow := func(config map[string]any) map[string]any {
		return config["authScheme"].(map[string]any)["flows"].(map[string]any)["authorizationCode"].(map[string]any)
	}
	foreign := popupBack + "?code=" + canary + "&state=theirs"
	_, oauth := f.config()
	link := "authUri " + oauth["authUri"].(string)
	as := func(id string) loginCall { return loginCall{&function{ID: id, Name: f.Name}, t} }
	named := func(name string) loginCall { return loginCall{&function{ID: toolCall, Name: name}, t} }
	for name, c := range map[string]struct {
		to       loginCall
		response any
		says     string
	}{
		"a real code":          {f, f.filled(foreign), link},
		"a code without state": {f, f.filled(popupBack + "?code=" + canary), link},
		"a code of our callback, with the provider's state": {f, f.filled(w.URL() + "/oauth/callback/x?code=" + canary + "&state=" + canary), link},
		"a code in words":                     {f, map[string]any{"result": foreign}, link},
		"a code in JSON text":                 {f, map[string]any{"response": asJSON(f.filled(foreign))}, link},
		"a code in snake case":                {f, snake(f.filled(foreign)), link},
		"an auth code":                        {f, changed(func(_, o map[string]any) { o["authCode"] = canary }), link},
		"a token":                             {f, changed(func(_, o map[string]any) { o["accessToken"] = canary }), link},
		"a token in a bare credential":        {f, map[string]any{"auth_type": "oauth2", "oauth2": map[string]any{"access_token": canary}}, link},
		"a refresh token":                     {f, changed(func(_, o map[string]any) { o["refreshToken"] = canary }), link},
		"a bearer token":                      {f, map[string]any{"authType": "http", "http": map[string]any{"scheme": "bearer", "credentials": map[string]any{"token": canary}}}, link},
		"another token URL":                   {f, changed(func(c, _ map[string]any) { flow(c)["tokenUrl"] = evil.URL + "/" + canary }), link},
		"another authorization URL":           {f, changed(func(c, _ map[string]any) { flow(c)["authorizationUrl"] = evil.URL + "/" + canary }), link},
		"another client":                      {f, changed(func(_, o map[string]any) { o["clientId"] = canary }), link},
		"more scopes":                         {f, changed(func(c, _ map[string]any) { flow(c)["scopes"].(map[string]any)["admin"] = canary }), link},
		"another state":                       {f, changed(func(_, o map[string]any) { o["state"] = canary }), link},
		"another page":                        {f, changed(func(_, o map[string]any) { o["authUri"] = evil.URL + "/" + canary }), link},
		"another key":                         {f, changed(func(c, _ map[string]any) { c["credentialKey"] = canary }), link},
		"another kind":                        {f, changed(func(c, _ map[string]any) { c["authScheme"].(map[string]any)["type"] = canary }), link},
		"the tool call's id":                  {named(f.Name), map[string]any{"result": canary}, f.ID},
		"the tool call's id, the tool's name": {named("list_tickets"), map[string]any{"result": canary}, f.ID},
		"an unknown id":                       {as("adk-unknown"), map[string]any{"result": canary}, f.ID},
		"no id":                               {as(""), map[string]any{"result": canary}, f.ID},
		"a request of another session":        {elsewhere, map[string]any{"result": canary}, f.ID},
		"another person's request":            {his, map[string]any{"result": canary}, f.ID},
	} {
		body := mine.body(nil, answering(c.to, c.response), map[string]string{"text": canary})
		status, said := w.api.raw("POST", "/run", body)
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", name, said)
		var failure map[string]any
		require.NoError(t, json.Unmarshal([]byte(said), &failure), said)
		require.Contains(t, failure["error"], c.says, name)
		require.NotContains(t, said, canary, name)
		status, said = w.api.raw("POST", "/run_sse", body)
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", name, said)
		require.NotContains(t, said, canary, name)
	}
	// In another's session, or under another's name, the request cannot be found at all.
	for name, s := range map[string]adkSession{"ben in ann's session": {runHandle{w.api, "assistant", "ben", mine.id}, w}} {
		status, said := w.api.raw("POST", "/run", s.body(nil, answering(f, f.filled(foreign))))
		require.Equal(t, http.StatusNotFound, status, name)
		require.NotContains(t, said, f.ID, name)
	}
	for _, s := range []adkSession{mine, another, bens} {
		require.Equal(t, "waiting_credential", s.status().State)
		require.Len(t, s.events(), 3)
	}
	require.Equal(t, []string{"pending", "pending", "pending"}, w.query(`SELECT status FROM requests`))
	require.Empty(t, w.provider.Counts().Token)

	// The request is as good as before.
	address := w.loginBack(f.link(), popupBack)
	_, got := mine.c.sse(mine.body(nil, answering(f, f.filled(address))), false)
	require.Equal(t, "Four tickets.", got[len(got)-1].Content.Parts[0].Text)
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
	require.NoError(t, w.Stop(stack.All()...))
	for where, body := range w.stored() {
		require.False(t, bytes.Contains(body, []byte(canary)), "%s: …%s…", where, around(body, canary))
	}
}
