package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/server/signin"
)

// groupOf is what a route is counted as: what writes as runs, what answers a question as logins, what reads or ends something
// not at all.
func groupOf(route string) string {
	method, path, _ := strings.Cut(route, " ")
	switch {
	case method == http.MethodGet || method == http.MethodDelete || strings.Contains(path, "{session}") && strings.HasSuffix(path, "/cancel") || strings.HasSuffix(path, "/revoke"):
		return ""
	case strings.HasSuffix(path, "/claim") || strings.HasSuffix(path, "{request}") || strings.HasSuffix(path, "/result"):
		return "logins"
	}
	return "runs"
}

// Every route of the API counts what one person sends, in the group that it belongs to, and says when to come back: each person
// for themselves, and each group for itself.
func TestRatesOverHTTP(t *testing.T) {
	t.Parallel()
	o := single(text("ok"))
	o.env = []string{"TARRY_RATE=runs=1,logins=1"}
	p := newPeople(t, o, "")
	fill := strings.NewReplacer("{app}", "assistant", "{user}", "me", "{session}", "s", "{call}", "c", "{request}", "q", "{account}", "a")
	groups := map[string][]string{}
	for _, route := range apiRoutes(t) {
		groups[groupOf(route)] = append(groups[groupOf(route)], route)
	}
	require.Greater(t, len(groups["runs"]), 5)
	require.Greater(t, len(groups["logins"]), 4)
	ask := func(c apiClient, route, accept string) (answered, string) {
		method, path, _ := strings.Cut(route, " ")
		return c.exchange(method, fill.Replace(path), strings.NewReader("{}"), http.Header{"Accept": {accept}})
	}
	for _, group := range []string{"runs", "logins"} {
		for i, route := range groups[group] {
			c := p.program(fmt.Sprint(group, "-", i)) // somebody new for each route
			resp, body := ask(c, route, "application/json")
			require.NotEqual(t, http.StatusTooManyRequests, resp.StatusCode, "%s: %s", route, body)
			resp, body = ask(c, route, "application/json")
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, route)
			after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			require.NoError(t, err, route)
			require.InDelta(t, 30, after, 30, route)
			require.Contains(t, body, resp.Header.Get("X-Request-Id"), route)
			for _, other := range groups[group] {
				resp, _ := ask(c, other, "application/json")
				require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, "%s after %s", other, route)
			}
			for _, other := range groups[""] {
				resp, _ := ask(c, other, "application/json")
				require.NotEqual(t, http.StatusTooManyRequests, resp.StatusCode, "%s after %s", other, route)
			}
		}
	}
	tired := p.program("tired")
	_, _ = ask(tired, groups["runs"][0], "application/json")
	for _, other := range groups["logins"] {
		resp, _ := ask(tired, other, "application/json")
		require.NotEqual(t, http.StatusTooManyRequests, resp.StatusCode, other)
		break
	}
	resp, body := ask(tired, "POST /run_sse", "text/event-stream")
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	require.Contains(t, oneFrame(t, resp, body), "too many requests")
	resp, _ = ask(p.program("rested"), "POST /run_sse", "text/event-stream")
	require.Equal(t, http.StatusOK, resp.StatusCode, "somebody else")
}

// What one person has open at once is counted on each route that goes on: a stream that ends makes room, what does not go on
// needs none, and nobody else is in the way.
func TestOpenStreamsOverHTTP(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("ok"))
	o.env = []string{"TARRY_RATE=streams=2"}
	p := newPeople(t, o, "")
	ann, ben := p.program("ann"), p.program("ben")
	session := func(c apiClient) string {
		r := c.startAs(signin.Me, "assistant", map[string]string{"task": "Go."})
		p.waiting(r)
		return r.id
	}
	follow := func(session string) string {
		return "/apps/assistant/users/me/sessions/" + session + "/events?follow=true"
	}
	hers, his := session(ann), session(ben)
	open := func(c apiClient, path string) (status int, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // end does
		require.NoError(t, err)
		return resp.StatusCode, func() { cancel(); _ = resp.Body.Close() }
	}
	var ends []func()
	for range 2 {
		status, end := open(ann, follow(hers))
		require.Equal(t, http.StatusOK, status)
		ends = append(ends, end)
	}
	message := `{"appName":"assistant","userId":"me","sessionId":"` + hers + `","newMessage":{"parts":[{"text":"Go."}]}}`
	for _, c := range []struct{ method, path, body string }{{"GET", follow(hers), ""}, {"POST", "/run", message}, {"POST", "/run_sse", message}} {
		resp, body := ann.exchange(c.method, c.path, strings.NewReader(c.body), nil)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, c.path)
		require.Equal(t, "1", resp.Header.Get("Retry-After"), c.path)
		require.Contains(t, body, "end one of them first", c.path)
	}
	resp, body := ann.exchange("POST", "/run_sse", strings.NewReader(message), http.Header{"Accept": {"text/event-stream"}})
	require.Contains(t, oneFrame(t, resp, body), "end one of them first")
	resp, _ = ann.exchange("GET", strings.TrimSuffix(follow(hers), "?follow=true"), strings.NewReader(""), nil)
	require.Equal(t, http.StatusOK, resp.StatusCode, "a list does not go on")
	status, end := open(ben, follow(his))
	require.Equal(t, http.StatusOK, status, "somebody else")
	end()
	ends[0]()
	p.eventually("a stream that ended makes no room", func() bool {
		status, end := open(ann, follow(hers))
		end()
		return status == http.StatusOK
	})
	ends[1]()
}

// exchange sends a request as it is.
func (c apiClient) exchange(method, path string, body io.Reader, header http.Header) (answered, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, body)
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return answered{resp.StatusCode, resp.Header}, string(text)
}

// oneFrame is the error of an answer that is one frame, as ADK's web UI would show it.
func oneFrame(t *testing.T, resp answered, body string) string {
	t.Helper()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"), body)
	data, ok := strings.CutPrefix(strings.TrimSuffix(body, "\n\n"), "data: ")
	require.True(t, ok, body)
	require.NotContains(t, data, "\n")
	var told struct {
		Error     string
		RequestID string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(data), &told), data)
	require.Equal(t, resp.Header.Get("X-Request-Id"), told.RequestID)
	return told.Error
}

// Whatever goes wrong with POST /run_sse, before it reaches the agent or because of what was sent, the web UI can show it; a
// client that does not ask for a stream has the status.
func TestFailuresReachTheWebUI(t *testing.T) {
	t.Parallel()
	p := newPeople(t, single(call("list_tickets")+text("ok")), "")
	alice := p.program(demo.Subject("alice"))
	r := alice.startAs("me", "assistant", map[string]string{"task": "Go."})
	p.waiting(r)
	request := asks(r.events())[0]
	in := func(user, session string, part any) string {
		body, err := json.Marshal(map[string]any{"appName": "assistant", "userId": user, "sessionId": session, "newMessage": map[string]any{"role": "user", "parts": []any{part}}})
		require.NoError(t, err)
		return string(body)
	}
	hi := map[string]any{"text": "hi"}
	code := map[string]any{"functionResponse": map[string]any{"id": request, "name": "adk_request_credential", "response": map[string]any{
		"exchangedAuthCredential": map[string]any{"oauth2": map[string]any{"authResponseUri": "https://evil.example/?code=" + demo.DefaultMark}},
	}}}
	for name, tc := range map[string]struct {
		token, body   string
		header        http.Header
		framed, plain int
		says          string
	}{
		"nobody":           {"", in("me", r.id, hi), nil, 401, 401, "sign in"},
		"bad token":        {"nonsense", in("me", r.id, hi), nil, 401, 401, "not valid"},
		"other site":       {alice.token, in("me", r.id, hi), http.Header{"Origin": {"https://evil.example"}}, 403, 403, "other sites"},
		"another person":   {alice.token, in(p.id("bob"), r.id, hi), nil, 200, 403, "may not act"},
		"unknown session":  {alice.token, in("me", "nope", hi), nil, 200, 404, "nope"},
		"no JSON":          {alice.token, "{", nil, 200, 400, "JSON"},
		"nested":           {alice.token, strings.Repeat("[", 1000), nil, 200, 400, "deeper"},
		"an app's state":   {alice.token, `{"appName":"assistant","userId":"me","sessionId":"` + r.id + `","stateDelta":{"app:x":1},"newMessage":{"parts":[{"text":"x"}]}}`, nil, 200, 400, "app:x"},
		"a code":           {alice.token, in("me", r.id, code), nil, 200, 400, "/connect?request=" + request},
		"too large":        {alice.token, in("me", r.id, map[string]any{"text": strings.Repeat("x", 17<<20)}), nil, 413, 413, "larger than"},
		"too large, chunk": {alice.token, "chunked", nil, 413, 413, "larger than"},
	} {
		send := func(accept string) (answered, string) {
			header := http.Header{"Accept": {accept}}
			for key, values := range tc.header {
				header[key] = values
			}
			var body io.Reader = strings.NewReader(tc.body)
			if tc.body == "chunked" {
				body = io.LimitReader(endless{}, 17<<20)
			}
			c := alice
			c.token = tc.token
			return c.exchange(http.MethodPost, "/run_sse", body, header)
		}
		resp, body := send("text/event-stream")
		require.Equal(t, tc.framed, resp.StatusCode, "%s: %s", name, body)
		require.Contains(t, oneFrame(t, resp, body), tc.says, name)
		require.NotContains(t, body, demo.DefaultMark, name)
		resp, body = send("*/*")
		require.Equal(t, tc.plain, resp.StatusCode, "%s: %s", name, body)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"), name)
		require.Contains(t, body, strings.ReplaceAll(tc.says, "&", `\u0026`), name)
	}
}

// endless is the beginning of a JSON text.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A message holds an image of some megabytes, and the agent gets it; other bodies are small. What is broken or overlong in a
// body is refused before anything is written.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(text("nice picture")))
	image := bytes.Repeat([]byte{0xff, 0x00, 0x7f}, 10<<20/9) // more than other bodies may hold
	picture := map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(image)}}
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{}, &session))
	status, events := w.api.sse(message(session.ID, map[string]any{"text": "Look."}, picture), false)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "nice picture", events[len(events)-1].Content.Parts[0].Text)
	_, body := w.api.exchange("GET", "/apps/assistant/users/user/sessions/"+session.ID, nil, nil)
	require.Contains(t, body, base64.StdEncoding.EncodeToString(image[:3<<10]))

	before := w.counts()
	const sessions = "/apps/assistant/users/user/sessions"
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	run := func(fields string) string {
		return `{"appName":"assistant","userId":"user","sessionId":"` + session.ID + `",` + fields + `}`
	}
	for name, tc := range map[string]struct {
		path, body string
		status     int
	}{
		"message of 17 MB":        {"/run", run(`"newMessage":{"parts":[{"text":"` + strings.Repeat("x", 17<<20) + `"}]}`), 413},
		"task of 5 MB":            {"/apps/assistant/users/user/runs", `{"task":"` + strings.Repeat("x", 5<<20) + `"}`, 413},
		"state of 5 MB":           {sessions, `{"state":{"a":"` + strings.Repeat("x", 5<<20) + `"}}`, 413},
		"cancel of 5 MB":          {sessions + "/" + session.ID + "/cancel", `{"invocation":"` + strings.Repeat("x", 5<<20) + `"}`, 413},
		"1001 parts":              {"/run", run(`"newMessage":{"parts":[` + many(1001, `{"text":"%d"}`) + `]}`), 400},
		"1001 keys":               {sessions, `{"state":{` + many(1001, `"k%d":1`) + `}}`, 400},
		"1001 keys of a delta":    {"/run", run(`"stateDelta":{` + many(1001, `"k%d":1`) + `},"newMessage":{"parts":[{"text":"x"}]}`), 400},
		"key of 513 bytes":        {sessions, `{"state":{"user:` + strings.Repeat("k", 508) + `":1}}`, 400},
		"101 levels":              {sessions, `{"state":{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}}`, 400},
		"101 levels in an answer": {"/run", run(`"newMessage":{"parts":[{"functionResponse":{"id":"x","name":"y","response":` + strings.Repeat(`{"a":`, 101) + `1` + strings.Repeat("}", 101) + `}}]}`), 400},
		"session id of 65 bytes":  {sessions, `{"sessionId":"` + strings.Repeat("s", 65) + `"}`, 400},
		"session id with a slash": {sessions, `{"sessionId":"a/b"}`, 400},
		"huge ids":                {"/run", run(`"functionCallEventId":"` + strings.Repeat("f", 1<<20) + `","invocationId":"` + strings.Repeat("i", 1<<20) + `"`), 404},
	} {
		resp, body := w.api.exchange(http.MethodPost, tc.path, strings.NewReader(tc.body), nil)
		require.Equal(t, tc.status, resp.StatusCode, "%s: %.300s", name, body)
		require.Less(t, len(body), 2500, name)
	}
	require.Equal(t, before, w.counts())
	for name, body := range map[string]string{
		"1000 keys":        `{"state":{` + many(1000, `"k%d":1`) + `}}`,
		"key of 512 bytes": `{"state":{"user:` + strings.Repeat("k", 507) + `":1}}`,
		"90 levels":        `{"state":{"a":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}}`,
		"64 bytes":         `{"sessionId":"` + strings.Repeat("s", 64) + `"}`,
		"brackets in text": `{"state":{"a":"` + strings.Repeat(`[{\"`, 200) + `"}}`,
	} {
		resp, text := w.api.exchange(http.MethodPost, sessions, strings.NewReader(body), nil)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %.300s", name, text)
	}
	// A header that nobody sends.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.Addr(stack.Server))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: "+w.Addr(stack.Server)+"\r\nX-Long: "+strings.Repeat("x", 100<<10)+"\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
}
