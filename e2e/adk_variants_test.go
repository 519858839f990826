package e2e_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// popupBack is where the browsers of these tests are sent back to; nobody serves it.
const popupBack = "http://client.example/dev-ui/"

// adkSession is a session that a client of ADK follows.
type adkSession struct {
	runHandle
	w *world
}

func (w *world) adkSession(user string) adkSession {
	w.t.Helper()
	return w.adkSessionOf("assistant", user)
}

func (w *world) adkSessionOf(app, user string) adkSession {
	w.t.Helper()
	var made struct{ ID string }
	require.Equal(w.t, http.StatusOK, w.api.call("POST", "/apps/"+app+"/users/"+user+"/sessions", nil, &made))
	return adkSession{runHandle{w.api, app, user, made.ID}, w}
}

// body is a request for a run, with what more says beside it.
func (s adkSession) body(more map[string]any, parts ...any) map[string]any {
	out := message(s.id, parts...)
	out["appName"], out["userId"] = s.app, s.user
	maps.Copy(out, more)
	return out
}

// say sends words and returns what follows.
func (s adkSession) say(words string) []event {
	s.w.t.Helper()
	status, events := s.c.sse(s.body(nil, map[string]string{"text": words}), false)
	require.Equal(s.w.t, http.StatusOK, status)
	return events
}

// loginCall is a call by which an agent asks for a login.
type loginCall struct {
	*function
	t testing.TB
}

// requested are the login requests in events.
func (s adkSession) requested(events []event) (out []loginCall) {
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_credential" && slices.Contains(e.LongRunningToolIDs, p.FunctionCall.ID) {
				out = append(out, loginCall{p.FunctionCall, s.w.t})
			}
		}
	}
	return out
}

// config is a copy of what was asked with, for the client to change; oauth is the part of it that clients fill in.
func (f loginCall) config() (config, oauth map[string]any) {
	f.t.Helper()
	body, err := json.Marshal(f.Args["authConfig"])
	require.NoError(f.t, err)
	require.NoError(f.t, json.Unmarshal(body, &config))
	oauth, ok := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
	require.True(f.t, ok, string(body))
	return config, oauth
}

// link is authUri with the client's own return address, appended as the web UI does.
func (f loginCall) link() string {
	f.t.Helper()
	_, oauth := f.config()
	u, err := url.Parse(oauth["authUri"].(string))
	require.NoError(f.t, err)
	q := u.Query()
	require.NotEmpty(f.t, q, "authUri has a query, so that & may follow")
	require.False(f.t, q.Has("redirect_uri"))
	return u.String() + "&redirect_uri=" + url.QueryEscape(popupBack)
}

// filled is the config with what the popup brought back.
func (f loginCall) filled(address string) map[string]any {
	f.t.Helper()
	config, oauth := f.config()
	oauth["authResponseUri"], oauth["redirectUri"] = address, popupBack
	return config
}

func answering(f loginCall, response any) map[string]any {
	return map[string]any{"functionResponse": map[string]any{"id": f.ID, "name": f.Name, "response": response}}
}

// snake spells all of v as adk-python 0.x did.
func snake(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			name := ""
			for _, r := range key {
				if r >= 'A' && r <= 'Z' {
					name += "_"
				}
				name += strings.ToLower(string(r))
			}
			if name == "type" || name == "in" {
				name += "_"
			}
			out[name] = snake(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = snake(v[i])
		}
		return out
	}
	return v
}

// asJSON is v as its JSON text.
func asJSON(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// replyVariant makes the request that a kind of client sends for an answered login; address is where its popup came back to.
type replyVariant func(s adkSession, f loginCall, events []event, address string) map[string]any

// part is a variant of the response alone.
func part(response func(f loginCall, address string) any) replyVariant {
	return func(s adkSession, f loginCall, _ []event, address string) map[string]any {
		return s.body(nil, answering(f, response(f, address)))
	}
}

// inRequest is what the popup brought back, with more in the request.
func inRequest(more func(events []event) map[string]any) replyVariant {
	return func(s adkSession, f loginCall, events []event, address string) map[string]any {
		return s.body(more(events), answering(f, f.filled(address)))
	}
}

// replyVariants are the clients that are known: the web UI, those of ADK's documentation, older and other libraries.
func replyVariants() map[string]replyVariant {
	return map[string]replyVariant{
		"what the popup brought back": part(func(f loginCall, address string) any { return f.filled(address) }),
		"unchanged":                   part(func(f loginCall, _ string) any { c, _ := f.config(); return c }),
		"snake case": func(s adkSession, f loginCall, _ []event, address string) map[string]any {
			var body map[string]any
			require.NoError(f.t, json.Unmarshal([]byte(asJSON(s.body(nil, answering(f, f.filled(address))))), &body))
			return snake(body).(map[string]any)
		},
		"half snake case": part(func(f loginCall, address string) any { return snake(f.filled(address)) }),
		"wrapped as result": part(func(f loginCall, address string) any {
			return map[string]any{"result": f.filled(address)}
		}),
		"wrapped as JSON text": part(func(f loginCall, address string) any {
			return map[string]any{"response": asJSON(f.filled(address))}
		}),
		"wrapped as authConfig": part(func(f loginCall, address string) any {
			return map[string]any{"functionCallId": f.Args["functionCallId"], "auth_config": f.filled(address)}
		}),
		"bare credential": part(func(f loginCall, address string) any {
			return f.filled(address)["exchangedAuthCredential"]
		}),
		"words":             part(func(loginCall, string) any { return map[string]any{"result": "I have logged in"} }),
		"a string":          part(func(loginCall, string) any { return "done" }),
		"nothing":           part(func(loginCall, string) any { return nil }),
		"an empty response": part(func(loginCall, string) any { return map[string]any{} }),
		"event of the request": inRequest(func(events []event) map[string]any {
			return map[string]any{"functionCallEventId": events[len(events)-1].ID}
		}),
		"an older event": inRequest(func(events []event) map[string]any {
			return map[string]any{"functionCallEventId": events[0].ID}
		}),
		"an unknown event": inRequest(func([]event) map[string]any { return map[string]any{"functionCallEventId": "no-such-event"} }),
		"an empty event":   inRequest(func([]event) map[string]any { return map[string]any{"functionCallEventId": ""} }),
		"the invocation": inRequest(func(events []event) map[string]any {
			return map[string]any{"invocationId": events[0].InvocationID}
		}),
		"no role, streaming": func(s adkSession, f loginCall, _ []event, address string) map[string]any {
			return s.body(map[string]any{"streaming": true, "newMessage": map[string]any{"parts": []any{answering(f, f.filled(address))}}, "customMetadata": map[string]any{"a": 1}})
		},
		"no name": func(s adkSession, f loginCall, _ []event, address string) map[string]any {
			return s.body(nil, map[string]any{"functionResponse": map[string]any{"id": f.ID, "response": f.filled(address)}})
		},
	}
}

// variantWorld is a world with the browsers' return address; who is asked is somebody else each time.
func variantWorld(t *testing.T, steps string) *world {
	t.Helper()
	o := single(steps)
	o.env = append(o.env, "TARRY_RETURN_URLS="+popupBack)
	return newWorld(t, o)
}

// ids are the events' ids, each of which must come once.
func ids(t *testing.T, events []event) (out []string) {
	t.Helper()
	for _, e := range events {
		require.NotContains(t, out, e.ID, "an event comes twice")
		require.NotEmpty(t, e.ID)
		require.NotEmpty(t, e.Content.Role)
		out = append(out, e.ID)
	}
	return out
}

// Every kind of client that replies to a login request gets its answer: one that replies before the login and again after it,
// while the code is exchanged, after the login, and twice; each gets what it has not seen, once. Those that only let the
// person log in find it in the session. However many reply: one exchange, one call, one answer (P3, P29, P34).
func TestADKReplyVariants(t *testing.T) {
	t.Parallel()
	w := variantWorld(t, call("list_tickets")+text("Four tickets."))
	logins := 0
	for name, variant := range replyVariants() {
		user := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		s := w.adkSession(user)
		events := s.say("Which tickets?")
		ids(t, events)
		asked := s.requested(events)
		require.Len(t, asked, 1, name)
		f := asked[0]

		before := variant(s, f, events, popupBack)
		status, got := s.c.sse(before, false)
		require.Equal(t, http.StatusOK, status, name)
		require.Empty(t, got, "%s: nothing follows before the login", name)

		address := w.loginBack(f.link(), popupBack)
		logins++
		body := variant(s, f, events, address)
		status, got = s.c.sse(body, false)
		require.Equal(t, http.StatusOK, status, name)
		ids(t, got)
		require.Len(t, responses(got, "list_tickets"), 1, name)
		require.Equal(t, "Four tickets.", got[len(got)-1].Content.Parts[0].Text, name)
		require.Equal(t, events[0].InvocationID, got[len(got)-1].InvocationID, "%s: the same invocation goes on", name)
		require.Empty(t, s.requested(got), name)

		_, repeat := s.c.sse(body, false)
		require.Equal(t, ids(t, got), ids(t, repeat), "%s: once more is the same, and nothing new", name)
		var whole []event
		require.Equal(t, http.StatusOK, w.api.call("POST", "/run", body, &whole))
		require.Equal(t, ids(t, got), ids(t, whole), "%s: /run", name)
		newer := s.body(map[string]any{"functionCallEventId": got[0].ID}, answering(f, f.filled(address)))
		_, rest := s.c.sse(newer, false)
		require.Equal(t, ids(t, got)[1:], ids(t, rest), "%s: a newer event is a place to go on from", name)
		require.Len(t, s.events(), 5, name)
		w.checkAnswers(s.events(), name)
	}
	counts := w.provider.Counts()
	require.Equal(t, logins, counts.Token["authorization_code"])
	require.Equal(t, logins, counts.TokenOK["authorization_code"])
	require.Len(t, w.mcp.Calls("list_tickets"), logins)
	require.Len(t, w.modelCalls(), 2*logins)
}

// Clients that only let the person log in never reply, and go on with the next message.
func TestADKClientNeverReplies(t *testing.T) {
	t.Parallel()
	w := variantWorld(t, call("list_tickets")+text("Four tickets."))
	s := w.adkSession("user")
	f := s.requested(s.say("Which tickets?"))[0]
	w.loginBack(f.link(), popupBack)
	require.Equal(t, "Four tickets.", w.finished(s.runHandle).Answer)
	_, resumed := s.c.sse(map[string]any{"appName": "assistant", "userId": "user", "sessionId": s.id, "invocationId": s.events()[0].InvocationID}, false)
	require.Equal(t, "Four tickets.", resumed[len(resumed)-1].Content.Parts[0].Text)
	events := s.say("Once more?")
	require.Empty(t, s.requested(events))
	require.Len(t, responses(events, "list_tickets"), 1)
	require.Equal(t, "Four tickets.", events[len(events)-1].Content.Parts[0].Text)
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
}

// All clients at once on one request, while its login is under way: the same callback lands three times, every variant is
// sent by two clients over both routes. One exchange, one call, one answer; each stream ends with
// it, and none has an event twice.
func TestADKClientsAllAtOnce(t *testing.T) {
	t.Parallel()
	w := variantWorld(t, call("list_tickets")+text("Four tickets."))
	s := w.adkSession("user")
	events := s.say("Which tickets?")
	f := s.requested(events)[0]

	gate := demo.NewGate()
	w.provider.SetBeforeToken(func(ctx context.Context, _ string) { gate.Pass(ctx) })
	var group sync.WaitGroup
	browser, address := w.toCallback(f.link())
	pages := make([]*demo.Page, 3)
	browser.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), popupBack) }
	for i := range pages {
		group.Go(func() { pages[i], _ = browser.Open(t.Context(), address) })
	}
	<-gate.Arrived()
	// The popup of none of them is back yet; they send what it will bring: code and state of ours.
	_, oauth := f.config()
	back := popupBack + "?code=ticket&state=" + url.QueryEscape(oauth["state"].(string))
	type answer struct {
		name   string
		status int
		events []event
	}
	answers := make(chan answer, 3*len(replyVariants()))
	for name, variant := range replyVariants() {
		body := variant(s, f, events, back)
		for range 2 {
			resp := s.c.openSSE(t.Context(), body)
			group.Go(func() {
				defer resp.Body.Close()
				answers <- answer{name, resp.StatusCode, s.c.readSSE(resp, false)}
			})
		}
		group.Go(func() {
			var got []event
			status := s.c.call("POST", "/run", body, &got)
			answers <- answer{name + ", /run", status, got}
		})
	}
	require.Empty(t, answers, "all wait for the login that is under way")
	gate.Open()
	group.Wait()
	close(answers)
	for _, page := range pages {
		require.NotNil(t, page)
		require.True(t, strings.HasPrefix(page.URL.String(), popupBack+"?"), page.URL.String())
	}
	want := ids(t, s.events()[3:])
	require.Len(t, want, 2)
	for got := range answers {
		require.Equal(t, http.StatusOK, got.status, got.name)
		require.Equal(t, want, ids(t, got.events), got.name)
	}
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Len(t, w.modelCalls(), 2)
	require.Equal(t, []string{"1"}, w.query(`SELECT COUNT(*) FROM audit WHERE action = 'granted'`))
	require.Equal(t, "done", s.status().InvocationStatus)
	w.checkAnswers(s.events(), "all at once")
}

// Words beside a reply are a message of their own: its invocation comes after the one that waited, and the stream has both.
func TestADKReplyWithWords(t *testing.T) {
	t.Parallel()
	w := variantWorld(t, call("list_tickets")+text("{{user_text}} Four tickets."))
	s := w.adkSession("user")
	events := s.say("Which tickets?")
	f := s.requested(events)[0]
	address := w.loginBack(f.link(), popupBack)
	_, got := s.c.sse(s.body(nil, answering(f, f.filled(address)), map[string]string{"text": "And now?"}), false)
	ids(t, got)
	var said []string
	for _, e := range got {
		if text := e.Content.Parts[0].Text; text != "" {
			said = append(said, text)
		}
	}
	require.Equal(t, []string{"Which tickets? Four tickets.", "And now? Four tickets."}, said)
	require.Equal(t, events[0].InvocationID, got[0].InvocationID)
	require.NotEqual(t, events[0].InvocationID, got[len(got)-1].InvocationID)
	require.Len(t, w.mcp.Calls("list_tickets"), 2)
}
