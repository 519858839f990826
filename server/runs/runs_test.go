package runs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/vault"
	"tarry/server/openapi/openapitest"
	"tarry/server/runs"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/store"
	"tarry/wire"
)

var ann = agent.Owner{App: "tickets", User: "ann"}

const one = "/apps/tickets/users/ann/sessions/s1"

// bundle is a server over a real store; the test plays the workflow.
type bundle struct {
	t       *testing.T
	answers *inputs.Service
	store   *store.Store
	url     string
	woken   atomic.Int32
	cancels chan string
}

type starter struct{ *store.Store }

func (s starter) Definition(ctx context.Context, app string) (string, error) {
	d, err := s.App(ctx, app)
	if err != nil {
		return "", err
	}
	return d.Hash()
}

func (starter) WorkflowID(owner agent.Owner, id string) string {
	return streamtest.WorkflowID(owner, id)
}

type engine struct{ b *bundle }

func (e engine) Cancel(_ context.Context, s session.Session, invocation string) error {
	e.b.cancels <- s.ID + "/" + invocation
	return nil
}

func (e engine) CancelCall(_ context.Context, s session.Session, call string) error {
	e.b.cancels <- s.ID + "/calls/" + call
	return nil
}

func (engine) History(_ context.Context, workflowID, runID string) ([]byte, error) {
	if strings.HasSuffix(workflowID, "/new") || runID == "gone" {
		return nil, session.ErrNotFound
	}
	return []byte(`{"events":["` + workflowID + runID + `"]}`), nil
}

func setup(t *testing.T) *bundle {
	t.Helper()
	s, path := streamtest.Open(t)
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: path + ".keys", Checks: s})
	require.NoError(t, err)
	answers := &inputs.Service{Store: s, Vault: v, Log: slog.New(slog.DiscardHandler)}
	b := &bundle{t: t, store: s, answers: answers, cancels: make(chan string, 10)}
	h := &runs.Handler{
		Log: s, Partials: s, Apps: s, Requests: s, Starter: starter{s}, Canceller: engine{b}, Histories: engine{b}, Lists: s,
		Confirmations: answers, Answers: answers,
		Owner: func(_ *http.Request, app, user string) (agent.Owner, error) {
			owner := agent.Owner{App: app, User: user}
			if user == "eve" {
				return agent.Owner{}, errors.New("no")
			}
			return owner, owner.Validate()
		},
		Wake: func() { b.woken.Add(1) }, PublicURL: streamtest.Public + "/",
		Logger: slog.New(slog.DiscardHandler), Poll: time.Millisecond,
	}
	mux := http.NewServeMux()
	h.Mount(mux)
	server := httptest.NewServer(openapitest.Check(t, mux))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bundle) do(method, path, body string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(b.t, err)
	response, err := (&http.Client{}).Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	out, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.StatusCode, strings.TrimSpace(string(out))
}

func (b *bundle) get(path string) map[string]any {
	b.t.Helper()
	status, body := b.do(http.MethodGet, path, "")
	require.Equal(b.t, http.StatusOK, status, body)
	return decode(b.t, body)
}

func (b *bundle) player(id string) *streamtest.Player {
	b.t.Helper()
	return streamtest.New(b.t, b.store, ann, id)
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &out), text)
	return out
}

func TestJobFromStartToEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, body := b.do(http.MethodPost, "/apps/tickets/users/ann/runs", `{"task":"look it up","session":"s1"}`)
	require.Equal(t, http.StatusAccepted, status, body)
	started := decode(t, body)
	require.Equal(t, "s1", started["session"])
	require.EqualValues(t, 1, b.woken.Load())

	p := b.player("s1")
	user := p.Take()
	require.Equal(t, "look it up", user.Text())
	require.Equal(t, started["invocation"], user.InvocationID)
	p.Say("let me see", "call-1")
	p.Ask("call-1", "r1")

	got := b.get(one + "/status")
	require.Equal(t, "waiting_credential", got["state"])
	require.Equal(t, "job", got["mode"])
	require.Equal(t, "running", got["invocation_status"])
	require.Empty(t, got["answer"])
	require.EqualValues(t, 1, got["model_calls"])
	require.EqualValues(t, 1, got["tool_calls"])
	waiting := got["waiting_for"].([]any)[0].(map[string]any)
	require.NotEmpty(t, waiting["since"])
	delete(waiting, "since")
	require.Equal(t, map[string]any{
		"kind": "login", "request": "r1", "link": streamtest.Public + "/connect?request=r1&state=correlator-r1", "provider": "https://r1.example",
		"tool": "search", "toolset": "notion", "agent": "helper", "call": "call-1", "scopes": []any{"read"},
	}, waiting)

	listed := b.get("/runs?user=ann")["runs"].([]any)
	require.Len(t, listed, 1)
	require.Equal(t, "s1", listed[0].(map[string]any)["session"])
	require.Len(t, listed[0].(map[string]any)["waiting_for"], 1)
	logins := b.get("/logins?user=ann")["logins"].([]any)
	require.Len(t, logins, 1)
	login := logins[0].(map[string]any)
	require.Equal(t, "pending", login["status"])
	require.Equal(t, "https://mcp.example", login["server"])
	require.NotContains(t, login, "ended")

	p.Grant("r1")
	got = b.get(one + "/status")
	require.Equal(t, "running", got["state"])
	require.Equal(t, []any{}, got["waiting_for"])
	require.Empty(t, b.get("/logins?user=ann")["logins"])
	logins = b.get("/logins?user=ann&all=true&app=tickets")["logins"].([]any)
	require.Equal(t, "granted", logins[0].(map[string]any)["status"])
	require.Contains(t, logins[0], "ended")

	p.Respond("call-1", "r1")
	p.Say("found it")
	p.Finish(wire.EndDone, true)
	got = b.get(one + "/status")
	require.Equal(t, "done", got["state"])
	require.Equal(t, "done", got["invocation_status"])
	require.Equal(t, "found it", got["answer"])
	require.Equal(t, false, got["denied"])
	require.EqualValues(t, 2, got["model_calls"])
	require.Empty(t, b.get("/runs?user=ann")["runs"])
	require.Len(t, b.get("/runs?user=ann&all=true")["runs"], 1)

	for _, again := range []string{`{"task":"again","session":"s1"}`, `{"task":"again","session":"s1","mode":"chat"}`} {
		status, body = b.do(http.MethodPost, "/apps/tickets/users/ann/runs", again)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, body, "leave session out")
	}
}

func TestChatGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 {
		status, body := b.do(http.MethodPost, "/apps/tickets/users/ann/runs", `{"task":"hi","mode":"chat","session":"s1"}`)
		require.Equal(t, http.StatusAccepted, status, body)
	}
	p := b.player("s1")
	p.Take()
	p.Finish(wire.EndFailed, false)
	got := b.get(one + "/status")
	require.Equal(t, "idle", got["state"])
	require.Equal(t, "failed", got["invocation_status"])
	require.Equal(t, "The invocation failed.", got["error"])
	p.Take()
	require.Equal(t, "running", b.get(one + "/status")["state"])
}

func TestRunsNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"a", "b", "c"} {
		p := b.player(id)
		if id != "b" {
			p.Post("hi", wire.ModeJob)
		}
	}
	ids := func(path string) []string {
		out := []string{}
		for _, r := range b.get(path)["runs"].([]any) {
			out = append(out, r.(map[string]any)["session"].(string)+" "+r.(map[string]any)["state"].(string))
		}
		return out
	}
	require.Equal(t, []string{"c running", "a running"}, ids("/runs?user=ann"))
	require.Equal(t, []string{"c running", "b new"}, ids("/runs?user=ann&all=true&limit=2"))
	require.Empty(t, ids("/runs?user=bob&all=true"))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.player("s1")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"no user":         {"GET", "/runs", "", 400, "user"},
		"somebody else":   {"GET", "/logins?user=eve", "", 403, "may not act"},
		"limit":           {"GET", "/runs?user=ann&limit=0", "", 400, "limit"},
		"no task":         {"POST", "/apps/tickets/users/ann/runs", `{}`, 400, "task"},
		"no body":         {"POST", "/apps/tickets/users/ann/runs", ``, 400, "empty"},
		"mode":            {"POST", "/apps/tickets/users/ann/runs", `{"task":"x","mode":"daemon"}`, 400, "mode"},
		"session id":      {"POST", "/apps/tickets/users/ann/runs", `{"task":"x","session":"a/b"}`, 400, "slash"},
		"app":             {"POST", "/apps/nope/users/ann/runs", `{"task":"x"}`, 404, "nope"},
		"session":         {"GET", "/apps/tickets/users/ann/sessions/nope/status", "", 404, "nope"},
		"other's session": {"GET", "/apps/tickets/users/bob/sessions/s1/status", "", 404, "s1"},
		"after":           {"GET", one + "/events?after=x", "", 400, "after"},
		"until":           {"GET", one + "/events?until=x", "", 400, "until"},
		"invocation":      {"POST", one + "/cancel", `{"invocation":"e-1"}`, 404, "e-1"},
		"no such call":    {"POST", one + "/calls/adk-1/cancel", "", 404, "adk-1 is not one of session s1"},
		"other's call":    {"POST", "/apps/tickets/users/eve/sessions/s1/calls/adk-1/cancel", "", 403, "may not act"},
		"no history":      {"GET", "/apps/tickets/users/ann/sessions/new/history", "", 404, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := b.do(c.method, c.path, c.body)
			require.Equal(t, c.status, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			require.NotContains(t, body, "\\n")
		})
	}
}

func TestCancelAndHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	status, _ := b.do(http.MethodPost, one+"/cancel", "")
	require.Equal(t, http.StatusAccepted, status)
	require.Empty(t, b.cancels, "nothing runs")
	p.Post("hi", wire.ModeChat)
	p.Take()
	status, _ = b.do(http.MethodPost, one+"/cancel", "")
	require.Equal(t, http.StatusAccepted, status)
	require.Equal(t, "s1/", <-b.cancels)
	status, _ = b.do(http.MethodPost, one+"/cancel", `{"invocation":"`+p.Invocation+`"}`)
	require.Equal(t, http.StatusAccepted, status)
	require.Equal(t, "s1/"+p.Invocation, <-b.cancels)

	p.Say("", "c1", "c2")
	p.Respond("c1", "")
	status, body := b.do(http.MethodPost, one+"/calls/c2/cancel", "")
	require.Equal(t, http.StatusAccepted, status)
	require.JSONEq(t, `{"session":"s1","call":"c2"}`, body)
	require.Equal(t, "s1/calls/c2", <-b.cancels)
	status, body = b.do(http.MethodPost, one+"/calls/c1/cancel", "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "has its result already")
	require.Empty(t, b.cancels)

	_, body = b.do(http.MethodGet, one+"/history", "")
	require.JSONEq(t, `{"events":["tarry/tickets/ann/s1"]}`, body)
	_, body = b.do(http.MethodGet, one+"/history?run=-run-1", "")
	require.JSONEq(t, `{"events":["tarry/tickets/ann/s1-run-1"]}`, body)
	status, body = b.do(http.MethodGet, one+"/history?run=gone", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "session s1 has no run gone")
}

// feed reads an event stream frame by frame.
type feed struct {
	t     *testing.T
	body  io.Closer
	lines *bufio.Scanner
}

type frame struct{ id, event, data string }

func (b *bundle) feed(path, last string) *feed {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	require.NoError(b.t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := (&http.Client{}).Do(r)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	b.t.Cleanup(func() { require.NoError(b.t, response.Body.Close()) })
	return &feed{b.t, response.Body, bufio.NewScanner(response.Body)}
}

func (f *feed) next() frame {
	f.t.Helper()
	var out frame
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			out.id = value
		case "event":
			out.event = value
		case "data":
			out.data = value
		case "":
			if out.data != "" {
				return out
			}
		}
	}
	f.t.Fatal("stream ended")
	return out
}

func TestEventsResumeWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("hi", wire.ModeJob)
	f := b.feed(one+"/events?follow=true", "")
	want := []string{string(p.Take().Body), string(p.Say("", "call-1").Body)}
	require.Equal(t, want[0], f.next().data)
	second := f.next()
	require.Equal(t, want[1], second.data)
	require.NoError(t, f.body.Close())

	p.Ask("call-1", "r1")
	waiting := b.feed(one+"/events?follow=true&until=wait&after=1", second.id) // the header is newer
	asked := waiting.next()
	require.Contains(t, asked.data, "adk_request_credential")
	last := waiting.next()
	require.Equal(t, "end", last.event)
	require.Equal(t, "waiting_credential", decode(t, last.data)["state"])

	f = b.feed(one+"/events?follow=true", asked.id)
	p.Grant("r1")
	require.Equal(t, string(p.Respond("call-1", "r1").Body), f.next().data)
	require.Equal(t, string(p.Say("found").Body), f.next().data)
	p.Finish(wire.EndDone, true)
	last = f.next()
	require.Equal(t, "end", last.event)
	require.Equal(t, map[string]any{"state": "done", "invocation": p.Invocation}, decode(t, last.data))
	require.False(t, f.lines.Scan() && f.lines.Text() != "", "nothing follows the end")

	_, body := b.do(http.MethodGet, one+"/events?after="+second.id, "")
	var events []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &events))
	require.Len(t, events, 3)
	require.Equal(t, asked.data, string(events[0]))
	_, body = b.do(http.MethodGet, one+"/events?invocation=e-none", "")
	require.Equal(t, "[]", body)
}

// A call that waits for approval shows what it would do, and is answered once, by its person, with true or false.
func TestApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"yes": {`{"confirmed":true,"payload":{"days":3}}`, "granted"}, "no": {`{"confirmed":false}`, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.player("s1")
			p.Post("look", wire.ModeJob)
			p.Take()
			p.Say("", "call-1", "call-2")
			p.AskApproval("call-1", "q1")
			other := b.player("s2")
			other.Post("look", wire.ModeJob)
			other.Take()
			other.Say("", "call-9")
			other.AskApproval("call-9", "q9")
			shown := b.get(one + "/status")
			require.Equal(t, "waiting_confirmation", shown["state"])
			waits := shown["waiting_for"].([]any)[0].(map[string]any)
			require.Equal(t, "confirmation", waits["kind"])
			require.Equal(t, "Search?", waits["hint"])
			require.Equal(t, map[string]any{}, waits["arguments"])

			for body, says := range map[string]string{
				`{}`: "confirmed is missing", `{"confirmed":"true"}`: "", `{"confirmed":1}`: "", `{"confirmed":null}`: "confirmed is missing", ``: "",
			} {
				status, text := b.do(http.MethodPost, one+"/confirmations/q1", body)
				require.Equal(t, http.StatusBadRequest, status, body)
				require.Contains(t, text, says)
			}
			for _, id := range []string{"q9", "call-1", "unknown"} {
				status, _ := b.do(http.MethodPost, one+"/confirmations/"+id, c.body)
				require.Equal(t, http.StatusNotFound, status, id)
			}
			status, _ := b.do(http.MethodPost, "/apps/tickets/users/bob/sessions/s1/confirmations/q1", c.body)
			require.Equal(t, http.StatusNotFound, status)
			require.Zero(t, b.woken.Load())

			status, body := b.do(http.MethodPost, one+"/confirmations/q1", c.body)
			require.Equal(t, http.StatusOK, status, body)
			require.JSONEq(t, `{"request":"q1","status":"`+c.want+`"}`, body)
			require.EqualValues(t, 1, b.woken.Load())
			status, body = b.do(http.MethodPost, one+"/confirmations/q1", `{"confirmed":true}`)
			require.Equal(t, http.StatusConflict, status)
			require.Contains(t, body, "q1 is over: "+c.want)
		})
	}
}

// A caller who sends faster than agents answer is told so, before a run has more to carry than it can.
func TestTooManyMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	for range session.MaxQueued {
		p.Post("look", wire.ModeChat)
	}
	status, body := b.do(http.MethodPost, "/apps/tickets/users/ann/runs", `{"task":"more","mode":"chat","session":"s1"}`)
	require.Equal(t, http.StatusTooManyRequests, status, body)
	require.Contains(t, body, "1000 messages of session s1 wait")
}

// An approval is found however many others the person has been asked for since.
func TestOldApproval(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("look", wire.ModeJob)
	p.Take()
	calls := []string{"call-0"}
	const more = 1000
	for n := range more {
		calls = append(calls, fmt.Sprint("call-", n+1))
	}
	p.Say("", calls...)
	for _, call := range calls {
		p.AskApproval(call, "q-"+call)
	}
	status, body := b.do(http.MethodPost, one+"/confirmations/q-call-0", `{"confirmed":true}`)
	require.Equal(t, http.StatusOK, status, body)
}

// A tool's question and a long-running call show what they are about, and are answered once, by their person, with what fits.
func TestAnswersAndResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("look", wire.ModeJob)
	p.Take()
	p.Say("", "call-1")
	schema := map[string]any{"type": "integer"}
	p.AskQuestion("call-1", "q1", schema, func(r auth.Request) ([]byte, error) {
		return b.answers.SealPrompt(r, auth.Prompt{Message: "How many?", Schema: json.RawMessage(`{"type":"integer"}`)})
	})
	p.Begin("call-2", nil)
	p.Running("call-3")
	shown := b.get(one + "/status")
	require.Equal(t, "waiting_input", shown["state"])
	require.Empty(t, shown["answer"])
	kinds := map[string]map[string]any{}
	for _, w := range shown["waiting_for"].([]any) {
		w := w.(map[string]any)
		kinds[w["kind"].(string)] = w
	}
	require.Equal(t, "How many?", kinds["question"]["message"])
	require.Equal(t, schema, kinds["question"]["schema"])
	require.Equal(t, map[string]any{"n": 1.0}, kinds["result"]["arguments"])
	require.Equal(t, "call-2", kinds["result"]["request"])

	question, result := one+"/inputs/q1", one+"/calls/call-2/result"
	for name, c := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"no answer":            {question, `{}`, 400, "response is missing"},
		"nothing":              {question, ``, 400, "empty"},
		"does not fit":         {question, `{"response":"three"}`, 422, "response: the answer does not fit what was asked for"},
		"half":                 {question, `{"response":1.5}`, 422, "integer"},
		"large":                {question, `{"response":"` + strings.Repeat("x", 70<<10) + `"}`, 422, "longer than"},
		"unknown":              {one + "/inputs/q7", `{"response":3}`, 404, "asks for no answer under the id"},
		"a result's":           {one + "/inputs/call-2", `{"response":3}`, 404, "asks for no answer"},
		"somebody else":        {"/apps/tickets/users/bob/sessions/s1/inputs/q1", `{"response":3}`, 404, ""},
		"no result":            {result, `{}`, 400, "response is missing"},
		"a question's":         {one + "/calls/q1/result", `{"response":{}}`, 404, "waits for no result"},
		"a call that runs":     {one + "/calls/call-3/result", `{"response":{}}`, 404, "waits for no result"},
		"a large result":       {result, `{"response":"` + strings.Repeat("x", 1<<20) + `"}`, 422, "longer than"},
		"somebody's result":    {"/apps/tickets/users/bob/sessions/s1/calls/call-2/result", `{"response":{}}`, 404, ""},
		"result of a stranger": {"/apps/tickets/users/eve/sessions/s1/calls/call-2/result", `{"response":{}}`, 403, ""},
	} {
		status, body := b.do(http.MethodPost, c.path, c.body)
		require.Equal(t, c.status, status, name+body)
		require.Contains(t, body, c.says, name)
	}
	require.Zero(t, b.woken.Load())

	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{result, `{"response":{"status":"half"},"interim":true}`, 200, `{"request":"call-2","status":"pending"}`},
		{question, `{"response":" 3 "}`, 200, `{"request":"q1","status":"granted"}`},
		{question, `{"response":4}`, 409, "q1 is over: granted"},
		{result, `{"response":"done"}`, 200, `{"request":"call-2","status":"granted"}`},
		{result, `{"response":"late","interim":true}`, 409, "is over"},
		{result, `{"decline":true}`, 409, "is over"},
	} {
		status, body := b.do(http.MethodPost, c.path, c.body)
		require.Equal(t, c.status, status, body)
		require.Contains(t, body, c.says)
	}
	require.EqualValues(t, 3, b.woken.Load())

	p.Begin("call-4", nil)
	status, body := b.do(http.MethodPost, one+"/calls/call-4/result", `{"decline":true}`)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"request":"call-4","status":"denied"}`, body)
}
