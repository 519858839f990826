package adk_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

const sentKey = "CANARY-key-of-ann"

// wants is a session that waits for a key under r1.
func (b *bundle) wants(k auth.Key) {
	b.t.Helper()
	p := b.player("s1")
	p.Post("look", "chat")
	p.Take()
	p.Say("", "call-1")
	p.AskKey("call-1", "r1", k)
}

func exchanged(c map[string]any) map[string]any { return map[string]any{"exchangedAuthCredential": c} }

func httpCredential(scheme string, credentials map[string]any) map[string]any {
	return map[string]any{"authType": "http", "http": map[string]any{"scheme": scheme, "credentials": credentials}}
}

func (b *bundle) is(status auth.Status, grants int) {
	b.t.Helper()
	r, err := b.store.Request(b.t.Context(), "r1", func(o agent.Owner) bool { return o == ann })
	require.NoError(b.t, err)
	require.Equal(b.t, status, r.Status)
	found, err := b.store.Grants(b.t.Context(), oauth.GrantQuery{Owner: ann, Resource: "server:https://mcp.example/mcp"})
	require.NoError(b.t, err)
	require.Len(b.t, found, grants)
}

// silent looks for the canary in everything that the store keeps.
func (b *bundle) silent() {
	b.t.Helper()
	view, err := b.store.Timeline(b.t.Context(), ann, "s1", 0)
	require.NoError(b.t, err)
	for _, e := range view {
		require.NotContains(b.t, string(e.Body), "CANARY")
	}
	for _, file := range []string{b.path, b.path + "-wal"} {
		body, err := os.ReadFile(file)
		require.NoError(b.t, err)
		require.NotContains(b.t, string(body), "CANARY", file)
	}
}

// P34: a key is taken in every form in which clients send one, and goes into the vault alone.
func TestRepliesWithKeys(t *testing.T) {
	t.Parallel()
	apiKey, basic, bearer := auth.Key{In: "header", Name: "X-Key"}, auth.Key{Scheme: "basic"}, auth.Key{Scheme: "bearer"}
	whole := map[string]any{
		"authScheme": map[string]any{"type": "apiKey", "in": "header", "name": "X-Key"}, "rawAuthCredential": map[string]any{"authType": "apiKey", "apiKey": nil},
		"exchangedAuthCredential": map[string]any{"authType": "apiKey", "apiKey": sentKey, "http": nil, "oauth2": map[string]any{"state": "correlator-r1", "authCode": nil}}, "credentialKey": "notion",
	}
	snaked := json.RawMessage(strings.NewReplacer("exchangedAuthCredential", "exchanged_auth_credential", "authScheme", "auth_scheme", "authType", "auth_type", "apiKey\":\"C", "api_key\":\"C").Replace(encode(t, whole)))
	for name, tc := range map[string]struct {
		key      auth.Key
		response any
	}{
		"config":           {apiKey, whole},
		"snake case":       {apiKey, snaked},
		"in a config":      {apiKey, map[string]any{"authConfig": whole}},
		"in a text":        {apiKey, map[string]any{"response": encode(t, whole)}},
		"credential":       {apiKey, map[string]any{"authType": "apiKey", "apiKey": sentKey}},
		"bare text":        {apiKey, sentKey},
		"result":           {apiKey, map[string]any{"result": " " + sentKey + "\n"}},
		"basic":            {basic, exchanged(httpCredential("basic", map[string]any{"username": "ann", "password": sentKey}))},
		"basic credential": {basic, httpCredential("basic", map[string]any{"username": "ann", "password": sentKey, "token": nil})},
		"bearer":           {bearer, exchanged(httpCredential("bearer", map[string]any{"token": sentKey}))},
		"bearer text":      {bearer, sentKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.wants(tc.key)
			woken := b.woken.Load()
			response := b.open(t.Context(), http.MethodPost, "/run_sse", request("s1", answer("r1", tc.response)))
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.NoError(t, response.Body.Close())
			b.is(auth.StatusGranted, 1)
			require.Greater(t, b.woken.Load(), woken)
			b.silent()
		})
	}
}

// What is no key that was asked for changes nothing: it is an acknowledgement, or refused.
func TestRepliesWithoutAKey(t *testing.T) {
	t.Parallel()
	apiKey, basic := auth.Key{In: "header", Name: "X-Key"}, auth.Key{Scheme: "basic"}
	for name, tc := range map[string]struct {
		key      auth.Key
		response any
		status   int
		says     string
	}{
		"done":             {apiKey, "done", 200, ""},
		"words":            {apiKey, map[string]any{"result": "I have typed it in on the page"}, 200, ""},
		"null":             {apiKey, nil, 200, ""},
		"our ticket":       {apiKey, exchanged(map[string]any{"oauth2": map[string]any{"authResponseUri": ticket}}), 200, ""},
		"text for basic":   {basic, sentKey, 200, ""},
		"bearer for basic": {basic, exchanged(httpCredential("bearer", map[string]any{"token": sentKey})), 400, "http.credentials.token"},
		"token for key":    {apiKey, exchanged(map[string]any{"oauth2": map[string]any{"accessToken": sentKey}}), 400, "accessToken"},
		"another scheme":   {apiKey, map[string]any{"authScheme": map[string]any{"type": "apiKey", "in": "query", "name": "X-Key"}, "exchangedAuthCredential": map[string]any{"apiKey": sentKey}}, 400, "authScheme.in"},
		"another key":      {apiKey, map[string]any{"credentialKey": "other", "exchangedAuthCredential": map[string]any{"apiKey": sentKey}}, 400, "credentialKey"},
		"raw":              {apiKey, map[string]any{"rawAuthCredential": map[string]any{"apiKey": sentKey}}, 400, "rawAuthCredential.apiKey"},
		"code":             {apiKey, exchanged(map[string]any{"apiKey": sentKey, "oauth2": map[string]any{"authResponseUri": "https://evil.example/?code=CANARY"}}), 400, "authorization code"},
		"headers":          {basic, exchanged(map[string]any{"http": map[string]any{"additionalHeaders": map[string]any{"X-Evil": sentKey}, "credentials": map[string]any{"username": "ann", "password": sentKey}}}), 400, "additionalHeaders"},
		"no user":          {basic, exchanged(httpCredential("basic", map[string]any{"password": sentKey})), 400, "the user name is missing"},
		"line break":       {apiKey, exchanged(map[string]any{"apiKey": "CANARY\r\nX-Evil: 1"}), 400, "cannot be sent"},
		"loose password":   {basic, map[string]any{"username": "ann", "password": sentKey}, 400, "password"},
		"list":             {apiKey, []string{sentKey}, 400, "list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.wants(tc.key)
			status, text := b.do(http.MethodPost, "/run", request("s1", answer("r1", tc.response)))
			require.Equal(t, tc.status, status, text)
			require.Contains(t, text, tc.says)
			require.NotContains(t, text, "CANARY")
			b.is(auth.StatusPending, 0)
			b.silent()
		})
	}
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.wants(apiKey)
		status, _ := b.do(http.MethodPost, "/run", request("s1", answer("r1", sentKey), answer("r1", sentKey+"2")))
		require.Equal(t, http.StatusBadRequest, status)
		b.is(auth.StatusPending, 0)
	})
}
