package adk_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/stream/streamtest"
	"tarry/wire"
)

const sessions = "/apps/tickets/users/ann/sessions"

func TestSmallRoutes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, want := range map[string]string{
		"/health":                          `{"status":"ok"}`,
		"/list-apps?relative_path=./":      `["tickets"]`,
		"/list-apps?detailed=true":         `{"apps":[{"name":"tickets","rootAgentName":"helper","description":"answers tickets","language":"yaml","isComputerUse":false}]}`,
		sessions:                           `[]`,
		"/apps/other/users/ann/sessions":   `[]`,
		"/apps/tickets/users/bob/sessions": `[]`,
	} {
		status, body := b.do(http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, want, body, path)
	}
	_, body := b.do(http.MethodGet, "/version", nil)
	version := decode(t, body)
	require.Equal(t, "v0.1.0", version["version"])
	require.Equal(t, "go", version["language"])
	require.NotEmpty(t, version["language_version"])
}

func TestCreateSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, body string
		status     int
		id         string
		state      map[string]any
		says       string
	}{
		"no body":        {path: sessions, status: 200},
		"null":           {path: sessions, body: "null", status: 200},
		"adk-web":        {path: sessions, body: `{"state":{"__session_metadata__":{"displayName":"hi there"}}}`, status: 200, state: map[string]any{"__session_metadata__": map[string]any{"displayName": "hi there"}}},
		"id in body":     {path: sessions, body: `{"sessionId":"s1","state":null,"events":[]}`, status: 200, id: "s1"},
		"snake case":     {path: sessions, body: `{"session_id":"s1","state":{"user_name":"Ann"}}`, status: 200, id: "s1", state: map[string]any{"user_name": "Ann"}},
		"id in path":     {path: sessions + "/s2", body: `{"state":{"a":1}}`, status: 200, id: "s2", state: map[string]any{"a": 1.0}},
		"bare state":     {path: sessions + "/s2", body: `{"a":1,"state":"open"}`, status: 200, id: "s2", state: map[string]any{"a": 1.0, "state": "open"}},
		"temp key":       {path: sessions, body: `{"state":{"temp:x":1}}`, status: 200},
		"app key":        {path: sessions, body: `{"state":{"app:x":1}}`, status: 400, says: "app:x"},
		"events of none": {path: sessions, body: `{"events":[{"author":"user"}]}`, status: 200},
		"list as body":   {path: sessions, body: `[1]`, status: 400, says: "object"},
		"slash in id":    {path: sessions, body: `{"sessionId":"a/b"}`, status: 400, says: "slash"},
		"unknown app":    {path: "/apps/nope/users/ann/sessions", status: 404, says: "nope"},
		"somebody else":  {path: "/apps/tickets/users/eve/sessions", status: 403, says: "may not act"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			status, body := b.do(http.MethodPost, c.path, c.body)
			require.Equal(t, c.status, status, body)
			got := decode(t, body)
			if c.status != http.StatusOK {
				require.Contains(t, got["error"], c.says)
				return
			}
			if c.id != "" {
				require.Equal(t, c.id, got["id"])
			}
			if c.state == nil {
				c.state = map[string]any{}
			}
			require.Equal(t, c.state, got["state"])
			require.Equal(t, []any{}, got["events"])
			require.Equal(t, "tickets", got["appName"])
			require.Equal(t, "ann", got["userId"])
			require.Greater(t, got["lastUpdateTime"], 1e9)

			status, again := b.do(http.MethodGet, sessions+"/"+got["id"].(string), nil)
			require.Equal(t, http.StatusOK, status)
			require.JSONEq(t, body, again)
			status, _ = b.do(http.MethodPost, sessions+"/"+got["id"].(string), nil)
			require.Equal(t, http.StatusConflict, status)
		})
	}
}

// P11: what was asked is read back byte for byte, also after a restart.
func TestEventsAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pending()
	view, err := b.store.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	read := func() string {
		status, body := b.do(http.MethodGet, sessions+"/s1", nil)
		require.Equal(t, http.StatusOK, status)
		return body
	}
	before := read()
	for _, body := range texts(view...) {
		require.Contains(t, before, body)
	}
	require.Contains(t, before, encode(t, streamtest.AuthConfig("r1")))
	b.serve(streamtest.Reopen(t, b.path))
	require.Equal(t, before, read())
	status, patched := b.do(http.MethodPatch, sessions+"/s1", `{"stateDelta":{"a":1}}`)
	require.Equal(t, http.StatusOK, status)
	b.serve(streamtest.Reopen(t, b.path))
	require.Equal(t, patched, read(), "and beside what a client writes")
	require.Contains(t, patched, encode(t, streamtest.AuthConfig("r1")))
	require.NotContains(t, before, "null", "ADK's clients refuse null")
	require.Equal(t, p.Invocation, view[0].InvocationID)
}

func TestDeleteSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, _ := b.do(http.MethodDelete, sessions+"/s1", nil)
	require.Equal(t, http.StatusNotFound, status)

	b.do(http.MethodPost, sessions+"/quiet", nil)
	status, body := b.do(http.MethodDelete, sessions+"/quiet", nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "null", body)
	require.Empty(t, b.cancels, "nothing ran")

	b.pending()
	status, _ = b.do(http.MethodDelete, sessions+"/s1", nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "s1/", <-b.cancels)
	status, _ = b.do(http.MethodGet, sessions+"/s1", nil)
	require.Equal(t, http.StatusNotFound, status)

	p := b.player("s2")
	p.Post("hi", wire.ModeJob)
	p.Take()
	p.Finish(wire.EndDone, true)
	b.do(http.MethodDelete, sessions+"/s2", nil)
	require.Empty(t, b.cancels, "it had ended")
}
