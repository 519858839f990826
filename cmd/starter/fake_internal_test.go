package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tarry/server/runs"
)

// fakeServer answers as Tarry's server does, from what a test puts in.
type fakeServer struct {
	*httptest.Server
	runs   []statusInfo
	logins []runs.Login
	// streams are what the event stream sends, connection by connection; the last is sent again. A stream that does not
	// end in "END" is cut off; one that ends in "HANG" stays open.
	streams []string
	// histories are those of runs of sessions: "SESSION RUN", or "SESSION " for the latest.
	histories map[string][]byte
	// fail is the status of every answer.
	fail int

	mu       sync.Mutex
	requests []string
	bodies   []string
	opened   int
}

var since = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newFake(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{}
	mux := http.NewServeMux()
	answer := func(pattern string, status int, what func(*http.Request) (any, bool)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body := &bytes.Buffer{}
			_, _ = body.ReadFrom(r.Body)
			f.mu.Lock()
			f.requests = append(f.requests, r.Method+" "+r.URL.String())
			f.bodies = append(f.bodies, body.String())
			f.mu.Unlock()
			out, ok := what(r)
			status := status
			switch {
			case f.fail != 0:
				status, out = f.fail, map[string]string{"error": "internal error", "request_id": "r1"}
			case !ok:
				status, out = http.StatusNotFound, map[string]string{"error": "session does not exist"}
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	const one = "/apps/{app}/users/{user}/sessions/{session}"
	answer("GET /list-apps", 200, func(*http.Request) (any, bool) { return []string{"planner"}, true })
	answer("GET /runs", 200, func(r *http.Request) (any, bool) { return map[string]any{"runs": f.list(r)}, true })
	answer("GET /logins", 200, func(*http.Request) (any, bool) { return map[string]any{"logins": f.logins}, true })
	answer("POST /apps/{app}/users/{user}/runs", 202, func(r *http.Request) (any, bool) {
		return runs.Started{Session: "s1", Invocation: "i1"}, r.PathValue("app") == "planner"
	})
	answer("GET "+one+"/status", 200, func(r *http.Request) (any, bool) { return f.find(r) })
	answer("POST "+one+"/cancel", 202, func(r *http.Request) (any, bool) { return f.find(r) })
	answer("POST "+one+"/calls/{call}/cancel", 202, func(r *http.Request) (any, bool) { return nil, r.PathValue("call") == "adk-1" })
	answer("POST "+one+"/confirmations/{request}", 200, func(r *http.Request) (any, bool) {
		return runs.Decided{Request: r.PathValue("request"), Status: "granted"}, true
	})
	answer("POST "+one+"/inputs/{request}", 200, func(r *http.Request) (any, bool) {
		return runs.Decided{Request: r.PathValue("request"), Status: "granted"}, true
	})
	answer("POST "+one+"/calls/{call}/result", 200, func(r *http.Request) (any, bool) {
		return runs.Decided{Request: r.PathValue("call"), Status: "pending"}, true
	})
	answer("GET "+one+"/history", 200, func(r *http.Request) (any, bool) {
		body, ok := f.histories[r.PathValue("session")+" "+r.URL.Query().Get("run")]
		return json.RawMessage(body), ok
	})
	mux.HandleFunc("GET "+one+"/events", f.events)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) list(r *http.Request) []runs.Run {
	out := []runs.Run{}
	for _, s := range f.runs {
		if app := r.URL.Query().Get("app"); app == "" || app == s.App {
			out = append(out, s.Run)
		}
	}
	return out
}

func (f *fakeServer) find(r *http.Request) (any, bool) {
	i := slices.IndexFunc(f.runs, func(s statusInfo) bool {
		return s.App == r.PathValue("app") && s.Session == r.PathValue("session") && s.User == r.PathValue("user")
	})
	if i < 0 {
		return nil, false
	}
	return f.runs[i], true
}

func (f *fakeServer) events(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.String())
	text := f.streams[min(f.opened, len(f.streams)-1)]
	f.opened++
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	hang := strings.HasSuffix(text, "HANG")
	text = strings.TrimSuffix(text, "HANG")
	if rest, ok := strings.CutSuffix(text, "END"); ok {
		text = rest + "event: end\ndata: {\"state\":\"done\",\"invocation\":\"i1\"}\n\n"
	}
	_, _ = fmt.Fprint(w, ": hello\n\n"+text)
	if hang {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// seen returns the requests so far.
func (f *fakeServer) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.requests, "\n")
}

func (f *fakeServer) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[len(f.bodies)-1]
}

// a session of an app in a state.
func session(app, id, ending string, change func(*statusInfo)) statusInfo {
	s := statusInfo{runs.Status{
		Run: runs.Run{
			App: app, User: "user", Session: id, State: ending, Mode: "job", Invocation: "i1", WaitingFor: []runs.Waiting{}, Created: since, Updated: since,
		},
		InvocationStatus: ending,
	}}
	if change != nil {
		change(&s)
	}
	return s
}

func waiting(s *statusInfo) {
	s.State, s.InvocationStatus = stateWaiting, "running"
	s.WaitingFor = []runs.Waiting{{
		Request: "q1", Link: "http://127.0.0.1:8080/connect?request=q1", Provider: "https://id.example", Toolset: "mcp", Agent: "planner",
		Scopes: []string{"tickets:read"}, Since: since,
	}}
}

// frames of an event stream.
func said(seq int, author, parts string) string {
	return fmt.Sprintf("id: %d\ndata: {\"id\":\"e%d\",\"invocationId\":\"i1\",\"author\":%q,\"content\":{\"role\":\"model\",\"parts\":[%s]}}\n\n", seq, seq, author, parts)
}

// ask is an event in which the server asks for a login.
func ask(seq int, author string) string {
	return strings.Replace(said(seq, author, asking), `"author"`, `"longRunningToolIds":["q1"],"author"`, 1)
}

const asking = `{"functionCall":{"id":"q1","name":"adk_request_credential","args":{"functionCallId":"c","authConfig":{"exchangedAuthCredential":{"oauth2":{"authUri":"http://127.0.0.1:8080/connect?request=q1"}}}}}}`

// writer is a buffer that others read meanwhile.
type writer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// starter runs the command line.
func starter(ctx context.Context, env map[string]string, args ...string) (status int, stdout, stderr string) {
	var out, err writer
	status = run(ctx, args, func(name string) string { return env[name] }, &out, &err)
	return status, out.String(), err.String()
}
