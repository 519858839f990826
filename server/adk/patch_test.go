package adk_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
	"tarry/wire"
)

func TestPatchSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, body string
		status     int
		state      map[string]any
		says       string
	}{
		"new key":             {body: `{"stateDelta":{"b":2}}`, status: 200, state: map[string]any{"a": 1.0, "b": 2.0}},
		"snake case":          {body: `{"state_delta":{"user_name":{"first_name":"Ann"}}}`, status: 200, state: map[string]any{"a": 1.0, "user_name": map[string]any{"first_name": "Ann"}}},
		"the other spelling":  {body: `{"state_delta":{"a":2},"stateDelta":{"a":3}}`, status: 200, state: map[string]any{"a": 3.0}},
		"null deletes":        {body: `{"stateDelta":{"a":null}}`, status: 200, state: map[string]any{}},
		"nothing":             {body: `{"stateDelta":{}}`, status: 200, state: map[string]any{"a": 1.0}},
		"of the user":         {body: `{"stateDelta":{"user:c":3}}`, status: 200, state: map[string]any{"a": 1.0, "user:c": 3.0}},
		"unknown fields":      {body: `{"stateDelta":{"b":2},"state":{"c":1},"events":[]}`, status: 200, state: map[string]any{"a": 1.0, "b": 2.0}},
		"temporary":           {body: `{"stateDelta":{"temp:x":1}}`, status: 200, state: map[string]any{"a": 1.0}},
		"of the app":          {body: `{"stateDelta":{"app:x":1}}`, status: 400, says: "app:x"},
		"missing":             {body: `{}`, status: 400, says: "stateDelta is missing"},
		"no body":             {body: ``, status: 400, says: "stateDelta is missing"},
		"null":                {body: `{"stateDelta":null}`, status: 400, says: "stateDelta is missing"},
		"a list":              {body: `{"stateDelta":[1]}`, status: 400, says: "stateDelta is not an object"},
		"a text":              {body: `{"stateDelta":"a"}`, status: 400, says: "stateDelta is not an object"},
		"list as body":        {body: `[1]`, status: 400, says: "object"},
		"no JSON":             {body: `{`, status: 400, says: "object"},
		"too much":            {body: `{"stateDelta":{"b":"` + strings.Repeat("x", session.MaxPatched) + `"}}`, status: 413, says: "stateDelta"},
		"session of nobody":   {path: sessions + "/nope", body: `{"stateDelta":{"a":1}}`, status: 404, says: "nope"},
		"session of bob":      {path: "/apps/tickets/users/bob/sessions/s1", body: `{"stateDelta":{"a":1}}`, status: 404, says: "s1"},
		"session of app":      {path: "/apps/other/users/ann/sessions/s1", body: `{"stateDelta":{"a":1}}`, status: 404, says: "s1"},
		"of nobody, and name": {path: sessions + "/nope", body: `{"stateDelta":{"__session_metadata__":{},"a":1}}`, status: 404, says: "nope"},
		"somebody else":       {path: "/apps/tickets/users/eve/sessions/s1", body: `{"stateDelta":{"a":1}}`, status: 403, says: "may not act"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.do(http.MethodPost, sessions, `{"sessionId":"s1","state":{"a":1}}`)
			if c.path == "" {
				c.path = sessions + "/s1"
			}
			status, body := b.do(http.MethodPatch, c.path, c.body)
			require.Equal(t, c.status, status, body)
			if c.status != http.StatusOK {
				require.Contains(t, decode(t, body)["error"], c.says)
				_, body = b.do(http.MethodGet, sessions+"/s1", nil)
				require.Equal(t, map[string]any{"a": 1.0}, decode(t, body)["state"])
				require.Empty(t, decode(t, body)["events"])
				return
			}
			got := decode(t, body)
			require.Equal(t, c.state, got["state"])
			require.Len(t, got["events"], 1)
			event := got["events"].([]any)[0].(map[string]any)
			require.Equal(t, "user", event["author"])
			require.NotEmpty(t, event["id"])
			require.Regexp(t, `^p-[0-9a-f-]{36}$`, event["invocationId"])
			require.NotContains(t, event, "content")
			_, again := b.do(http.MethodGet, sessions+"/s1", nil)
			require.JSONEq(t, body, again)
		})
	}
}

// The web UI names a session by PATCH, alone or, from its list, with all the state that it has seen there.
func TestRename(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1","state":{"topic":"before","kept":[1,{"n":2}],"__session_metadata__":{"displayName":"hi"}}}`)
	listed := func() map[string]any {
		_, body := b.do(http.MethodGet, sessions, nil)
		require.True(t, strings.HasPrefix(body, "["), body)
		return decode(t, strings.Trim(body, "[]"+"\n"))["state"].(map[string]any)
	}
	require.Equal(t, "hi", listed()["__session_metadata__"].(map[string]any)["displayName"])
	b.do(http.MethodPost, sessions, `{"sessionId":"gone"}`)
	b.do(http.MethodDelete, sessions+"/gone", nil)

	p := b.player("s1")
	p.Post("hi", wire.ModeChat)
	p.Take()
	p.Write(map[string]any{"topic": "after", "app:all": "agent"})
	p.Finish(wire.EndDone, false)

	seen := listed()
	seen["__session_metadata__"] = map[string]any{"displayName": "from the list"}
	status, body := b.do(http.MethodPatch, sessions+"/s1", map[string]any{"stateDelta": seen})
	require.Equal(t, http.StatusOK, status, body)
	state := decode(t, body)["state"].(map[string]any)
	require.Equal(t, "after", state["topic"], "what the list showed is no wish")
	require.Equal(t, "from the list", state["__session_metadata__"].(map[string]any)["displayName"])
	require.Equal(t, "from the list", listed()["__session_metadata__"].(map[string]any)["displayName"])

	state["__session_metadata__"] = map[string]any{"displayName": "from the session"}
	status, body = b.do(http.MethodPatch, sessions+"/s1", map[string]any{"stateDelta": state})
	require.Equal(t, http.StatusOK, status, "the app's state is in what a session shows, and repeated is no write: "+body)

	state["topic"] = "client"
	status, body = b.do(http.MethodPatch, sessions+"/s1", map[string]any{"stateDelta": state})
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "client", decode(t, body)["state"].(map[string]any)["topic"])
	state["app:all"] = "client"
	status, _ = b.do(http.MethodPatch, sessions+"/s1", map[string]any{"stateDelta": state})
	require.Equal(t, http.StatusBadRequest, status)
}

// What a client writes beside a run is in nobody's way: neither the run nor who listens to it gets to see it.
func TestPatchBesideARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	stream := b.sse(say("s1", "hi"))
	p.Take()
	var wait sync.WaitGroup
	for i := range 5 {
		wait.Go(func() {
			status, body := b.do(http.MethodPatch, sessions+"/s1", fmt.Sprintf(`{"stateDelta":{"k%d":1}}`, i))
			if status != http.StatusOK {
				t.Error(body)
			}
		})
	}
	p.Say("let me see", "call-1")
	p.Ask("call-1", "r1")
	wait.Wait()
	said := <-stream
	require.Len(t, said, 2)
	p.Grant("r1")
	p.Respond("call-1", "r1")
	p.Say("there it is")
	p.Finish(wire.EndDone, false)
	views := session.NewViews(b.store, 1)
	view, err := views.View(t.Context(), p.Row, p.Heads)
	require.NoError(t, err)
	for _, r := range view {
		require.NotEqual(t, session.KindPatch, r.Kind)
	}
	contents, err := views.Contents(t.Context(), p.Row, p.Heads, session.Reader{Agent: "helper"})
	require.NoError(t, err)
	require.Len(t, contents, 4)

	p.Post("more", wire.ModeChat)
	next := p.Take()
	view, err = views.View(t.Context(), p.Row, []string{next.ID})
	require.NoError(t, err)
	state := session.Fold(nil, nil, view, next.InvocationID)
	require.Len(t, state, 5)
	again, err := views.Contents(t.Context(), p.Row, []string{next.ID}, session.Reader{Agent: "helper"})
	require.NoError(t, err)
	require.Equal(t, contents, again[:4])
	require.Len(t, again, 5)
}
