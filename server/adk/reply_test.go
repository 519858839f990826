package adk_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

const ticket = streamtest.Public + "/dev-ui/?code=ticket&state=correlator-r1"

// config is the issued config of request r1, changed.
func config(change func(config, oauth map[string]any)) map[string]any {
	out := streamtest.AuthConfig("r1")
	if change != nil {
		change(out, out["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any))
	}
	return out
}

// set changes one field of the exchanged credential.
func set(field, value string) map[string]any {
	return config(func(_, oauth map[string]any) { oauth[field] = value })
}

// snake is the spelling of ADK's Python 0.x, everywhere.
func snake(t *testing.T, v any) any {
	t.Helper()
	return json.RawMessage(strings.NewReplacer(
		"authScheme", "auth_scheme", `"type"`, `"type_"`, "authorizationCode", "authorization_code", "authorizationUrl", "authorization_url",
		"tokenUrl", "token_url", "rawAuthCredential", "raw_auth_credential", "exchangedAuthCredential", "exchanged_auth_credential",
		"authType", "auth_type", "clientId", "client_id", "authUri", "auth_uri", "credentialKey", "credential_key",
		"authResponseUri", "auth_response_uri", "accessToken", "access_token",
	).Replace(encode(t, v)))
}

func TestRepliesThatAreHeard(t *testing.T) {
	t.Parallel()
	bare := func(response string) map[string]any {
		return map[string]any{"authType": "oauth2", "oauth2": map[string]any{"clientId": "cid", "authResponseUri": response}}
	}
	for name, response := range map[string]any{
		"unchanged":         config(nil),
		"our ticket":        set("authResponseUri", ticket),
		"denied":            set("authResponseUri", streamtest.Public+"/dev-ui/?error=access_denied&state=correlator-r1"),
		"other return":      set("authResponseUri", "https://ui.example/back?code=ticket&state=correlator-r1"),
		"redirect URI":      set("redirectUri", "https://anywhere.example/"),
		"snake case":        snake(t, set("authResponseUri", ticket)),
		"wrapped":           map[string]any{"authConfig": set("authResponseUri", ticket)},
		"wrapped in a text": map[string]any{"response": encode(t, set("authResponseUri", ticket))},
		"bare credential":   bare(ticket),
		"bare snake":        snake(t, bare(ticket)),
		"bare oauth2":       map[string]any{"clientId": "cid", "state": "correlator-r1", "authResponseUri": ticket},
		"free text":         map[string]any{"result": "I have logged in, see https://idp.example/done?x=1"},
		"string":            "done",
		"null":              nil,
		"empty":             map[string]any{},
		"something else":    map[string]any{"status": "ok", "n": 1},
		"nulls and defaults": config(func(c, oauth map[string]any) {
			for _, field := range []string{"clientSecret", "accessToken", "authCode", "expiresAt"} {
				oauth[field] = nil
			}
			oauth["tokenEndpointAuthMethod"] = "client_secret_basic"
			c["rawAuthCredential"].(map[string]any)["http"] = nil
			c["authScheme"].(map[string]any)["flows"].(map[string]any)["implicit"] = nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.handler.ReturnURLs = []string{"https://ui.example/back"}
			p := b.pending()
			body := request("s1", answer("r1", response))
			status, text := b.do(http.MethodPost, "/run", body)
			require.Equal(t, http.StatusOK, status, text)
			require.Equal(t, "[]", text, "it waits still")
			r, err := b.store.Request(t.Context(), "r1", func(o agent.Owner) bool { return o == ann })
			require.NoError(t, err)
			require.Equal(t, auth.StatusPending, r.Status)

			p.Grant("r1")
			got := b.sse(body)
			want := texts(p.Respond("call-1", "r1"))
			p.Finish(wire.EndDone, false)
			require.Equal(t, want, <-got)
			n, err := b.store.Outstanding(t.Context())
			require.NoError(t, err)
			require.Zero(t, n, "no message came of it")
		})
	}
}

// P24, P25: what a client sends back changes and grants nothing, and is kept nowhere.
func TestRepliesThatAreRefused(t *testing.T) { //nolint:tparallel // the store is looked at when all have run
	t.Parallel()
	b := setup(t)
	p := b.pending()
	deep := func(path ...string) map[string]any {
		return config(func(c, _ map[string]any) {
			for _, field := range path[:len(path)-1] {
				c = c[field].(map[string]any)
			}
			c[path[len(path)-1]] = "https://evil.example/CANARY"
		})
	}
	cases := map[string]struct {
		response any
		says     string
	}{
		"real code":           {set("authResponseUri", streamtest.Public+"/dev-ui/?code=CANARY&state=theirs"), "authorization code"},
		"code without state":  {set("authResponseUri", streamtest.Public+"/dev-ui/?code=CANARY"), "authorization code"},
		"code of elsewhere":   {set("authResponseUri", "https://evil.example/?code=CANARY&state=correlator-r1"), "authorization code"},
		"code in a fragment":  {set("authResponseUri", streamtest.Public+"/dev-ui/#code=CANARY&state=theirs"), "authorization code"},
		"token in a fragment": {set("authResponseUri", streamtest.Public+"/dev-ui/#access_token=CANARY"), "token"},
		"code, snake case":    {snake(t, set("authResponseUri", "https://app.example/?code=CANARY&state=x")), "authorization code"},
		"code, bare":          {map[string]any{"oauth2": map[string]any{"auth_response_uri": "https://app.example/?code=CANARY"}}, "authorization code"},
		"code as text":        {map[string]any{"result": "https://app.example/?code=CANARY&state=x"}, "authorization code"},
		"code as string":      {"https://app.example/?code=CANARY&state=x", "authorization code"},
		"auth code":           {set("authCode", "CANARY"), "authCode"},
		"access token":        {set("accessToken", "CANARY"), "accessToken"},
		"access token, snake": {snake(t, set("accessToken", "CANARY")), "accessToken"},
		"both spellings":      {config(func(_, o map[string]any) { o["accessToken"], o["access_token"] = "", "CANARY" }), "accessToken"},
		"refresh token":       {set("refreshToken", "CANARY"), "refreshToken"},
		"client secret":       {set("clientSecret", "CANARY"), "clientSecret"},
		"other client":        {set("clientId", "CANARY"), "clientId"},
		"other state":         {set("state", "CANARY"), "state"},
		"other page":          {set("authUri", "https://evil.example/CANARY"), "authUri"},
		"verifier":            {set("codeVerifier", "CANARY"), "codeVerifier"},
		"token URL":           {deep("authScheme", "flows", "authorizationCode", "tokenUrl"), "tokenUrl"},
		"raw secret":          {deep("rawAuthCredential", "oauth2", "clientSecret"), "clientSecret"},
		"key":                 {deep("credentialKey"), "credentialKey"},
		"API key":             {map[string]any{"apiKey": "CANARY"}, "apiKey"},
		"loose token":         {map[string]any{"access_token": "CANARY"}, "accessToken"},
		"loose, wrapped":      {map[string]any{"result": map[string]any{"token": "CANARY"}}, "token"},
		"bearer":              {map[string]any{"authType": "http", "http": map[string]any{"scheme": "bearer", "credentials": map[string]any{"token": "CANARY"}}}, "exchangedAuthCredential"},
		"wrapped too often":   {map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{"token": "CANARY"}}}}}}, "wrapped"},
		"list":                {[]any{"CANARY"}, "list"},
	}
	t.Run("each", func(t *testing.T) { // ends when all of them have
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				status, body := b.do(http.MethodPost, "/run", request("s1", map[string]any{"text": "CANARY"}, answer("r1", c.response)))
				require.Equal(t, http.StatusBadRequest, status, body)
				says := decode(t, body)["error"]
				require.Contains(t, says, c.says)
				require.Contains(t, says, "authUri "+streamtest.Public+"/connect?request=r1&state=correlator-r1")
				require.NotContains(t, body, "CANARY")
			})
		}
	})
	r, err := b.store.Request(t.Context(), "r1", func(o agent.Owner) bool { return o == ann })
	require.NoError(t, err)
	require.Equal(t, auth.StatusPending, r.Status)
	_, body := b.do(http.MethodGet, sessions+"/s1", nil)
	require.NotContains(t, body, "CANARY")
	n, err := b.store.Outstanding(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	require.NotEmpty(t, p.Invocation)
}

// Where the browser was not sent back to the client, its person has the address of our callback to paste. Once the login is there
// that is an acknowledgement as others are; before, and from elsewhere, it is refused.
func TestAddressOfOurCallback(t *testing.T) {
	t.Parallel()
	ours, theirs := streamtest.Public+"/oauth/callback/abc?code=CANARY&state=providers", "https://evil.example/oauth/callback/abc?code=CANARY&state=providers"
	b := setup(t)
	p := b.pending()
	for _, response := range []any{set("authResponseUri", ours), map[string]any{"result": ours}} {
		status, body := b.do(http.MethodPost, "/run", request("s1", answer("r1", response)))
		require.Equal(t, http.StatusBadRequest, status, body)
	}
	p.Grant("r1")
	var got []<-chan []string
	for _, response := range []any{set("authResponseUri", ours), map[string]any{"result": ours}} {
		got = append(got, b.sse(request("s1", answer("r1", response))))
	}
	for _, response := range []any{set("authResponseUri", theirs), set("accessToken", "CANARY"), set("authResponseUri", streamtest.Public+"/dev-ui/?code=CANARY&state=x")} {
		status, body := b.do(http.MethodPost, "/run", request("s1", answer("r1", response)))
		require.Equal(t, http.StatusBadRequest, status, body)
	}
	want := texts(p.Respond("call-1", "r1"))
	p.Finish(wire.EndDone, false)
	for _, events := range got {
		require.Equal(t, want, <-events)
	}
}

// P34: a wrong id is an error that says which one would be right.
func TestRepliesToTheWrongID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending()
	other := b.player("s2")
	other.Post("look", wire.ModeChat)
	other.Take()
	other.Say("", "call-9")
	other.Ask("call-9", "r9")
	for name, c := range map[string]struct {
		part map[string]any
		says string
	}{
		"tool call":            {answer("call-1", config(nil)), "id r1"},
		"tool call, tool name": {map[string]any{"functionResponse": map[string]any{"id": "call-1", "name": "search", "response": map[string]any{}}}, "id r1 and name adk_request_credential"},
		"unknown":              {answer("r7", config(nil)), "asked under r1"},
		"other session's":      {answer("r9", config(nil)), "asked under r1"},
		"none":                 {answer("", config(nil)), "asked under r1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := b.do(http.MethodPost, "/run", request("s1", c.part))
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, decode(t, body)["error"], c.says)
		})
	}
}

// Words beside a reply are a message of their own, whose turn comes after.
func TestReplyWithWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pending()
	p.Grant("r1")
	got := b.sse(request("s1", answer("r1", config(nil)), map[string]any{"text": "and be brief"}))
	require.EqualValues(t, 1, b.woken.Load())
	want := texts(p.Respond("call-1", "r1"), p.Say("a long answer"))
	p.Finish(wire.EndDone, false)
	user := p.Take()
	require.Len(t, user.Content.Parts, 1)
	require.Equal(t, "and be brief", user.Text())
	want = append(want, texts(p.Say("brief"))...)
	p.Finish(wire.EndDone, false)
	require.Equal(t, want, <-got)
}
