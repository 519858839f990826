package auth_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
)

func TestPut(t *testing.T) {
	t.Parallel()
	token := auth.AccessToken{Access: auth.NewSecret("k&1=ü"), Username: auth.NewSecret("me")}
	plain := auth.AccessToken{Access: auth.NewSecret("secret")}
	for name, tc := range map[string]struct {
		auth  agent.Auth
		token auth.AccessToken
		url   string
		want  http.Header
	}{
		"oauth2": {agent.Auth{Type: agent.AuthOAuth2}, plain, "https://x.example/a?b=c", http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=1; sid=old"}}},
		"mcp":    {agent.Auth{}, plain, "https://x.example/a?b=c", http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=1; sid=old"}}},
		"none":   {agent.Auth{Type: agent.AuthHTTP, Scheme: "basic"}, auth.AccessToken{}, "https://x.example/a?b=c", http.Header{"Cookie": {"a=1; sid=old"}}},
		"bearer": {agent.Auth{Type: agent.AuthHTTP, Scheme: "bearer"}, plain, "https://x.example/a?b=c", http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=1; sid=old"}}},
		"basic":  {agent.Auth{Type: agent.AuthHTTP, Scheme: "basic"}, token, "https://x.example/a?b=c", http.Header{"Authorization": {"Basic bWU6ayYxPcO8"}, "Cookie": {"a=1; sid=old"}}},
		"header": {agent.Auth{Type: agent.AuthAPIKey, In: "header", Name: "x-key"}, plain, "https://x.example/a?b=c", http.Header{"X-Key": {"secret"}, "Cookie": {"a=1; sid=old"}}},
		"query":  {agent.Auth{Type: agent.AuthAPIKey, In: "query", Name: "b"}, token, "https://x.example/a?b=k%261%3D%C3%BC", http.Header{"Cookie": {"a=1; sid=old"}}},
		"beside": {agent.Auth{Type: agent.AuthAPIKey, In: "query", Name: "k"}, plain, "https://x.example/a?b=c&k=secret", http.Header{"Cookie": {"a=1; sid=old"}}},
		"cookie": {agent.Auth{Type: agent.AuthAPIKey, In: "cookie", Name: "sid"}, plain, "https://x.example/a?b=c", http.Header{"Cookie": {"a=1; sid=secret"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x.example/a?b=c", http.NoBody)
			require.NoError(t, err)
			req.Header.Set("Cookie", "a=1; sid=old")
			before := req.URL
			tc.token.Put(req, tc.auth)
			require.Equal(t, tc.url, req.URL.String())
			require.Equal(t, tc.want, req.Header)
			require.Equal(t, "https://x.example/a?b=c", before.String(), "whoever shares the URL does not get the key")
		})
	}
}

// What is sent in another way is another client of a slot.
func TestKeyClient(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range []auth.Key{{In: "header", Name: "a"}, {In: "query", Name: "a"}, {In: "cookie", Name: "a"}, {In: "query", Name: "A"}, {Scheme: "basic"}, {Scheme: "bearer"}} {
		require.False(t, seen[k.Client()], k.Client())
		seen[k.Client()] = true
	}
	require.Equal(t, auth.Key{In: "header", Name: "X-Key"}.Client(), auth.Key{In: "header", Name: "x-key"}.Client())
	require.Nil(t, auth.KeyOf(agent.Auth{Type: agent.AuthOAuth2}))
	require.Nil(t, auth.KeyOf(agent.Auth{}))
}

type wants struct {
	auth.Broker
	got []auth.Want
}

func (w *wants) Token(_ context.Context, want auth.Want) (auth.AccessToken, error) {
	w.got = append(w.got, want)
	return auth.AccessToken{Access: auth.NewSecret("secret"), Version: 7}, nil
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	b := &wants{}
	bound := agent.Auth{Key: "k", Type: agent.AuthAPIKey, In: "header", Name: "X-Key", Resource: "https://api.example"}
	login := agent.Auth{Key: "l", Type: agent.AuthOAuth2}
	ctx := auth.WithBroker(t.Context(), b, "search", []agent.Auth{bound, login})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example/v1?q=private#f", http.NoBody)
	require.NoError(t, err)
	token, err := auth.Authorize(ctx, "k", req)
	require.NoError(t, err)
	require.Equal(t, int64(7), token.Version)
	require.Equal(t, "secret", req.Header.Get("X-Key"))
	_, err = auth.Authorize(ctx, "l", req)
	require.NoError(t, err)
	require.Equal(t, []auth.Want{{Auth: bound, Server: "https://api.example/v1", Tool: "search"}, {Auth: login, Tool: "search"}}, b.got)
	_, err = auth.Authorize(ctx, "other", req)
	require.ErrorIs(t, err, auth.ErrNotDeclared)
	_, err = auth.Authorize(t.Context(), "k", req)
	require.ErrorIs(t, err, auth.ErrNotDeclared)
}
