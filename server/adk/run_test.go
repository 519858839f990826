package adk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/wire"
)

func TestRunSSE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	got := b.sse(say("s1", "look it up"))
	p := b.player("s1")
	user := p.Take()
	require.Equal(t, "look it up", user.Text())
	require.Equal(t, agent.UserAuthor, user.Author)
	require.EqualValues(t, 1, b.woken.Load())
	want := texts(p.Say("", "call-1"), p.Respond("call-1", ""), p.Say("found"))
	p.Finish(wire.EndDone, false)
	require.Equal(t, want, <-got)
	row, err := b.store.Session(t.Context(), ann, "s1")
	require.NoError(t, err)
	require.Equal(t, "chat", row.Mode)
	require.NotEmpty(t, row.Definition)
}

// A client that sends faster than agents answer is told so.
func TestTooManyMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	p := b.player("s1")
	for range session.MaxQueued {
		p.Post("look", wire.ModeChat)
	}
	status, body := b.do(http.MethodPost, "/run", say("s1", "more"))
	require.Equal(t, http.StatusTooManyRequests, status, body)
	require.Contains(t, body, "1000 messages of session s1 wait")
}

// P1: nothing follows the question, for neither route; P3 and P34: the reply brings what does.
func TestRunPausesAndGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	got := b.sse(say("s1", "look it up"))
	p := b.player("s1")
	p.Take()
	calls := p.Say("", "call-1")
	p.Ask("call-1", "r1")
	data := <-got
	require.Len(t, data, 2)
	require.Equal(t, string(calls.Body), data[0])
	require.Contains(t, data[1], `"adk_request_credential"`)
	require.Contains(t, data[1], `"longRunningToolIds":["r1"]`)

	p.Grant("r1")
	config := streamtest.AuthConfig("r1")
	oauth := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
	oauth["authResponseUri"] = streamtest.Public + "/dev-ui/?code=ticket&state=correlator-r1"
	oauth["redirectUri"] = streamtest.Public + "/dev-ui/"
	reply := request("s1", answer("r1", config))
	reply["functionCallEventId"] = "no-such-event" // P29
	got = b.sse(reply)
	want := texts(p.Respond("call-1", "r1"), p.Say("found"))
	p.Finish(wire.EndDone, false)
	require.Equal(t, want, <-got)
	require.EqualValues(t, 1, b.woken.Load(), "nothing was posted")

	// Once more, as adk-web does when the session is loaded again: the same, and nothing twice.
	require.Equal(t, want, <-b.sse(reply))
	status, body := b.do(http.MethodPost, "/run", reply)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "["+strings.Join(want, ",")+"]", body)
	// A client that says how far it has read gets the rest.
	view, err := b.store.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	reply["functionCallEventId"] = view[3].ID
	require.Equal(t, want[1:], <-b.sse(reply))

	// The session takes further messages.
	got = b.sse(say("s1", "and now?"))
	p.Take()
	want = texts(p.Say("nothing"))
	p.Finish(wire.EndDone, false)
	require.Equal(t, want, <-got)
}

func TestRunWithoutAMessageResumes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pending()
	p.Grant("r1")
	for _, body := range []map[string]any{
		{"appName": "tickets", "userId": "ann", "sessionId": "s1", "invocationId": p.Invocation},
		{"app_name": "tickets", "user_id": "ann", "session_id": "s1", "function_call_event_id": "anything", "new_message": nil},
	} {
		got := b.sse(body)
		defer func() { require.Len(t, <-got, 2) }()
	}
	p.Respond("call-1", "r1")
	p.Say("found")
	p.Finish(wire.EndDone, false)
}

func TestRunSnakeCase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	body := `{"app_name":"tickets","user_id":"ann","session_id":"s1","unknown":1,"state_delta":{"city":"Oslo","user:lang":"no"},
		"new_message":{"parts":[{"text":"hi"},{"inline_data":{"mime_type":"text/plain","data":"aGk_"}},{"video_metadata":{}}]}}`
	got := b.sse(body)
	p := b.player("s1")
	user := p.Take()
	require.Len(t, user.Content.Parts, 2)
	require.Equal(t, "hi?", string(user.Content.Parts[1].InlineData.Data))
	require.Equal(t, "user", user.Content.Role)
	require.Equal(t, map[string]any{"city": "Oslo", "user:lang": "no"}, user.Actions.StateDelta)
	p.Finish(wire.EndDone, false)
	require.Empty(t, <-got)
}

// P27: the run is not the client's.
func TestRunOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	ctx, cancel := context.WithCancel(t.Context())
	response := b.open(ctx, http.MethodPost, "/run_sse", say("s1", "take your time"))
	p := b.player("s1")
	p.Take()
	said := p.Say("", "call-1")
	lines := bufio.NewScanner(response.Body)
	for !strings.HasPrefix(lines.Text(), "data: ") {
		require.True(t, lines.Scan())
	}
	require.Equal(t, "data: "+string(said.Body), lines.Text())
	cancel()
	require.NoError(t, response.Body.Close())
	p.Respond("call-1", "")
	result := p.Say("here it is")
	p.Finish(wire.EndDone, false)
	require.Empty(t, b.cancels)
	_, body := b.do(http.MethodGet, sessions+"/s1", nil)
	require.Contains(t, body, string(result.Body))
}

func TestRunThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	got := b.sse(say("s1", "hi"))
	p := b.player("s1")
	p.Take()
	p.Finish(wire.EndFailed, false)
	data := <-got
	require.Len(t, data, 1, "the event says it, no frame of ours")
	require.Equal(t, "FAILED", decode(t, data[0])["errorCode"])

	// A session that is closed before a message's turn comes.
	got = b.sse(say("s1", "hi"))
	p.Take()
	queued := b.sse(say("s1", "and then?"))
	p.Finish(wire.EndCancelled, true)
	require.Len(t, <-got, 1)
	data = <-queued
	require.Len(t, data, 1)
	require.NotEmpty(t, decode(t, data[0])["error"])
	status, body := b.do(http.MethodPost, "/run", say("s1", "hello?"))
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "create another")
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	b.do(http.MethodPost, "/apps/tickets/users/bob/sessions", `{"sessionId":"s2"}`)
	with := func(change map[string]any) map[string]any {
		out := say("s1", "hi")
		for key, value := range change {
			out[key] = value
		}
		return out
	}
	part := func(p string) map[string]any {
		return with(map[string]any{"newMessage": map[string]any{"parts": []json.RawMessage{json.RawMessage(p)}}})
	}
	for name, c := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"no JSON":             {"{", 400, "JSON"},
		"no session id":       {with(map[string]any{"sessionId": ""}), 400, "sessionId"},
		"no such session":     {say("nope", "hi"), 404, "nope"},
		"somebody else's":     {say("s2", "hi"), 404, "s2"},
		"somebody else":       {with(map[string]any{"userId": "eve"}), 403, "may not act"},
		"no user":             {with(map[string]any{"userId": ""}), 400, "user id is empty"},
		"no message":          {with(map[string]any{"newMessage": nil}), 400, "newMessage"},
		"empty message":       {part(`{"text":""}`), 400, "newMessage"},
		"other invocation":    {with(map[string]any{"newMessage": nil, "invocationId": "e-1"}), 404, "e-1"},
		"app state":           {with(map[string]any{"stateDelta": map[string]any{"app:x": 1}}), 400, "app:x"},
		"function call":       {part(`{"functionCall":{"name":"adk_request_credential","args":{}}}`), 400, "functionCall"},
		"function call snake": {part(`{"function_call":{"name":"search"}}`), 400, "functionCall"},
		"confirmation":        {part(`{"functionResponse":{"id":"c1","name":"adk_request_confirmation","response":{"confirmed":true}}}`), 400, "asked for no login or approval"},
		"input":               {part(`{"function_response":{"id":"c1","name":"adk_request_input","response":{}}}`), 400, "asked for no login or approval, no answer"},
		"reserved":            {part(`{"functionResponse":{"id":"c1","name":"transfer_to_agent","response":{}}}`), 400, "reserved"},
		"tool's response":     {part(`{"functionResponse":{"id":"c1","name":"search","response":{}}}`), 400, "adk_request_credential"},
		"nothing was asked":   {request("s1", answer("r1", map[string]any{})), 400, "asked for no login"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := b.do(http.MethodPost, "/run", c.body)
			require.Equal(t, c.status, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			response := b.open(t.Context(), http.MethodPost, "/run_sse", c.body)
			require.Equal(t, http.StatusOK, response.StatusCode)
			data := b.frames(response)
			require.Len(t, data, 1)
			told := decode(t, data[0])
			require.Contains(t, told["error"], c.says)
			require.InDelta(t, c.status, told["error_details"].(map[string]any)["status"], 0)
			plain := b.accepting(t.Context(), "application/json", http.MethodPost, "/run_sse", c.body)
			require.Equal(t, c.status, plain.StatusCode)
			require.Equal(t, "application/json", plain.Header.Get("Content-Type"))
			require.NoError(t, json.NewDecoder(plain.Body).Decode(&told))
			require.NoError(t, plain.Body.Close())
			require.Contains(t, told["error"], c.says)
		})
	}
	t.Cleanup(func() { require.Zero(t, b.woken.Load()) })
}
