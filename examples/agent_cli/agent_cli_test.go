package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// programs are the client in both languages, as command lines.
func programs(t *testing.T) map[string][]string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent_cli")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	all := map[string][]string{"go": {binary}}
	python, err := exec.LookPath("python3")
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "python3 is missing")
		t.Log("python3 is missing: only the program in Go is tested")
		return all
	}
	all["python"] = []string{python, "agent_cli.py"}
	return all
}

// program is a client that runs, and fails the test where it does not do what it should.
type program struct {
	t *testing.T
	*demo.Terminal
}

func launch(t *testing.T, line []string, args ...string) *program {
	t.Helper()
	env := []string{"ADK_TOKEN=secret-token", "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	terminal, err := demo.RunInTerminal(t.Context(), env, slices.Concat(line, args)...)
	require.NoError(t, err)
	return &program{t, terminal}
}

func (p *program) waitFor(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	require.NoError(p.t, p.Await(ctx, text))
}

func (p *program) enter(lines ...string) {
	p.t.Helper()
	require.NoError(p.t, p.Enter(lines...))
}

// request is one that the fake server got.
type request struct {
	path, key, last string
	body            map[string]any
}

func (r request) replies(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, p := range r.body["newMessage"].(map[string]any)["parts"].([]any) {
		f := p.(map[string]any)["functionResponse"].(map[string]any)
		out[f["id"].(string)+" "+f["name"].(string)] = f["response"]
	}
	return out
}

// answer is what the fake server says to one request for a run: events, and then how the stream ends.
type answer struct {
	status int
	events []string
	cut    bool
}

// fake is a server that says what it is told to.
type fake struct {
	*httptest.Server
	t       *testing.T
	answers []answer

	mu     sync.Mutex
	stored []string
	got    []request
	sent   int
}

func newFake(t *testing.T, answers ...answer) *fake {
	t.Helper()
	f := &fake{t: t, answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// keeps is what the session holds already.
func (f *fake) keeps(events ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored = events
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret-token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /list-apps":
		_, _ = io.WriteString(w, `["tickets"]`)
	case "POST /apps/tickets/users/ann/sessions":
		_, _ = io.WriteString(w, `{"id":"s1","events":[],"state":{}}`)
	case "GET /apps/tickets/users/ann/sessions/s1":
		f.mu.Lock()
		defer f.mu.Unlock()
		_, _ = io.WriteString(w, `{"id":"s1","events":[`+strings.Join(f.stored, ",")+`]}`)
	case "POST /run_sse":
		f.run(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fake) run(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := request{path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), last: r.Header.Get("Last-Event-ID")}
	if json.NewDecoder(r.Body).Decode(&got.body) != nil || len(f.got) >= len(f.answers) {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	a := f.answers[len(f.got)]
	f.got = append(f.got, got)
	w.Header().Set("Content-Type", "text/event-stream")
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = io.WriteString(w, ": the run goes on\n\n")
	for _, e := range a.events {
		f.sent++
		_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", f.sent, e)
	}
	if !a.cut {
		return
	}
	_, _ = io.WriteString(w, "id: 99\ndata: {\"id\":")
	_ = http.NewResponseController(w).Flush()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func (f *fake) requests(n int) []request {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(f.t, f.got, n)
	return f.got
}

// event is one of the agent's.
func event(id string, long []string, parts ...string) string {
	ids, _ := json.Marshal(long)
	return `{"id":"` + id + `","invocationId":"i1","author":"bot","content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"longRunningToolIds":` + string(ids) + `}`
}

func says(id, text string) string { return event(id, nil, `{"text":"`+text+`"}`) }

func responds(id, call, response string) string {
	return event(id, nil, `{"functionResponse":{"id":"`+call+`","name":"tool","response":`+response+`}}`)
}

func login(id, call string) string {
	return `{"functionCall":{"id":"` + id + `","name":"adk_request_credential","args":{"functionCallId":"` + call + `","authConfig":{"authScheme":{"type":"oauth2"},"credentialKey":"k","exchangedAuthCredential":{"authType":"oauth2","oauth2":{"authUri":"https://idp.example/connect?request=` + id + `","state":"state-` + id + `"}}}}}}`
}

func approval(id, call string) string {
	return `{"functionCall":{"id":"` + id + `","name":"adk_request_confirmation","args":{"originalFunctionCall":{"id":"` + call + `","name":"pay","args":{"amount":3}},"toolConfirmation":{"hint":"A lot.","confirmed":false}}}}`
}

func question(id string) string {
	return `{"functionCall":{"id":"` + id + `","name":"adk_request_input","args":{"interruptId":"` + id + `","message":"How many?","responseSchema":{"type":"integer"}}}}`
}

const job = `{"functionCall":{"id":"c-job","name":"job","args":{}}}`

func (f *fake) args(more ...string) []string {
	return append([]string{"--server", f.URL, "--user", "ann"}, more...)
}

// Everything that an agent can ask, in one event: one message answers it all.
func TestAnswersEverything(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(
				t,
				answer{events: []string{
					event("e1", []string{"c-job"}, job, `{"functionCall":{"id":"c-1","name":"tool","args":{}}}`),
					event("e2", []string{"r1", "r2", "r3"}, login("r1", "c-1"), approval("r2", "c-2"), question("r3"), login("r9", "c-9")),
				}},
				answer{events: []string{
					responds("e3", "c-1", `{"ok":1}`), responds("e4", "c-2", `{"ok":2}`), responds("e5", "c-job", `{"ok":3}`), says("e6", "All done."),
				}},
			)
			p := launch(t, line, f.args("Go.")...)
			p.waitFor("Result of job")
			p.enter(`{"status":"done"}`)
			p.waitFor("https://idp.example/connect?request=r1")
			p.enter("")
			p.waitFor(`Run pay {"amount":`)
			p.waitFor("A lot.")
			p.enter("y")
			p.waitFor("How many? (")
			p.enter("12")
			p.waitFor("All done.")
			require.Zero(t, p.End(), p.Shown())
			require.NotContains(t, p.Shown(), "r9", "what the server does not mark is what a model wrote")
			got := f.requests(2)
			require.Equal(t, map[string]any{"role": "user", "parts": []any{map[string]any{"text": "Go."}}}, got[0].body["newMessage"])
			require.Equal(t, "tickets/ann/s1", fmt.Sprint(got[0].body["appName"], "/", got[0].body["userId"], "/", got[0].body["sessionId"]))
			replies := got[1].replies(t)
			config := replies["r1 adk_request_credential"].(map[string]any)
			require.Equal(t, "k", config["credentialKey"], "the config goes back as it came")
			require.Equal(t, map[string]any{"type": "oauth2"}, config["authScheme"])
			delete(replies, "r1 adk_request_credential")
			require.Equal(t, map[string]any{
				"r2 adk_request_confirmation": map[string]any{"confirmed": true}, "r3 adk_request_input": map[string]any{"result": "12"}, "c-job job": map[string]any{"status": "done"},
			}, replies)
		})
	}
}

// A denial and a refusal are outcomes; what is not there yet, or does not fit, is asked again.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(
				t,
				answer{events: []string{event("e1", []string{"r1"}, login("r1", "c-1"))}},
				answer{}, // not logged in yet
				answer{events: []string{`{"error":"does not fit","error_details":{"error_type":"BadRequest","status":400}}`}},
				answer{events: []string{responds("e2", "c-1", `{"error":"denied"}`), event("e3", []string{"r2"}, approval("r2", "c-2"))}},
				answer{events: []string{responds("e4", "c-2", `{"error":"rejected"}`), says("e5", "Then not.")}},
			)
			p := launch(t, line, f.args("Go.")...)
			p.enter("", "", "", "n")
			p.waitFor("Then not.")
			require.Zero(t, p.End(), p.Shown())
			require.Equal(t, 3, strings.Count(p.Shown(), "request=r1"))
			require.Contains(t, p.Shown(), "(refused: does not fit)")
			require.Contains(t, p.Shown(), `"denied"`)
			require.Equal(t, map[string]any{"confirmed": false}, f.requests(5)[4].replies(t)["r2 adk_request_confirmation"])
		})
	}
}

// A stream that breaks is taken up again with the same body, the same key and the last id; nothing is shown twice.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(
				t,
				answer{cut: true},
				answer{status: http.StatusServiceUnavailable},
				answer{events: []string{`{"error":"too many","error_details":{"status":429}}`}},
				answer{events: []string{says("e1", "One.")}, cut: true},
				answer{events: []string{says("e1", "One."), says("e2", "Two.")}},
			)
			p := launch(t, line, f.args("Go.")...)
			p.waitFor("Two.")
			require.Zero(t, p.End(), p.Shown())
			require.Equal(t, 1, strings.Count(p.Shown(), "One."))
			got := f.requests(5)
			for i, r := range got {
				require.Equal(t, got[0].body, r.body)
				require.Equal(t, got[0].key, r.key)
				require.Equal(t, []string{"", "", "", "", "2"}[i], r.last, "a frame that did not come whole does not count")
			}
			require.NotEmpty(t, got[0].key)
		})
	}
}

// The popup's address comes back by itself where this program listens for it, and is pasted where it does not.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			back := "http://" + l.Addr().String() + "/back"
			require.NoError(t, l.Close())
			for redirect, pasted := range map[string]string{back: "", "https://app.example/dev-ui/": "https://app.example/dev-ui/?code=c&state=state-r1"} {
				f := newFake(
					t,
					answer{events: []string{event("e1", []string{"r1"}, login("r1", "c-1"))}},
					answer{events: []string{responds("e2", "c-1", `{}`), says("e3", "In.")}},
				)
				p := launch(t, line, f.args("--redirect", redirect, "Go.")...)
				p.waitFor("request=r1&redirect_uri=" + url.QueryEscape(redirect))
				want := pasted
				if pasted != "" {
					p.enter(pasted)
				} else {
					want = back + "?code=c&state=state-r1"
					require.Eventually(t, func() bool { return get(t, back+"?code=c&state=other") == http.StatusNotFound }, time.Minute, time.Millisecond)
					require.Equal(t, http.StatusNotFound, get(t, strings.Replace(want, "/back", "/", 1)))
					require.Equal(t, http.StatusOK, get(t, want))
				}
				p.waitFor("In.")
				require.Zero(t, p.End(), p.Shown())
				config := f.requests(2)[1].replies(t)["r1 adk_request_credential"].(map[string]any)
				oauth := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
				require.Equal(t, want, oauth["authResponseUri"])
				require.Equal(t, redirect, oauth["redirectUri"])
			}
		})
	}
}

func get(t *testing.T, address string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	var refused *net.OpError
	if errors.As(err, &refused) {
		return 0
	}
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// Nobody there: the program says how to go on. Started again it shows what was said, takes up what came since, and asks only
// what is open: of a call that was asked for twice the newer request, and nothing of an agent that has gone on.
func TestGoesOnLater(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, answer{events: []string{event("e1", []string{"r1"}, login("r1", "c-1"))}})
			p := launch(t, line, f.args("Go.")...)
			require.Equal(t, 3, p.End())
			require.Contains(t, p.Shown(), "--app tickets --session s1")

			f = newFake(
				t,
				answer{events: []string{event("e4", []string{"r4"}, login("r4", "c-4"))}},
				answer{events: []string{responds("e5", "c-4", `{}`), says("e6", "Later.")}},
			)
			f.keeps(
				event("e0", []string{"r0"}, login("r0", "_adk_toolset_auth_McpToolset")), says("e1", "listed"),
				event("e2", []string{"r2"}, login("r2", "c-4")),
			)
			p = launch(t, line, f.args("--app", "tickets", "--session", "s1")...)
			p.waitFor("request=r4")
			p.enter("")
			p.waitFor("Later.")
			require.Zero(t, p.End(), p.Shown())
			require.NotContains(t, p.Shown(), "request=r2")
			require.NotContains(t, p.Shown(), "request=r0")
			require.Equal(t, "i1", f.requests(2)[0].body["invocationId"])
		})
	}
}

// What models and servers say does not steer the terminal, a run that fails is an exit status, and no token goes elsewhere.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for name, line := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, answer{events: []string{says("e1", `\u001b]52;c;x\u0007 \u202e\u009b`), `{"id":"e2","invocationId":"i1","author":"bot","errorCode":"FAILED","errorMessage":"no","actions":{}}`}})
			p := launch(t, line, f.args("Go.")...)
			require.Equal(t, 1, p.End())
			require.NotRegexp(t, "[\x1b\x07\u202e\u009b]", p.Shown())
			require.Contains(t, p.Shown(), "FAILED")

			f = newFake(t, answer{status: http.StatusNotFound, events: []string{`{"error":"session s1 does not exist"}`}})
			p = launch(t, line, f.args("Go.")...)
			require.Equal(t, 1, p.End())
			require.Contains(t, p.Shown(), "session s1 does not exist")

			elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) }))
			t.Cleanup(elsewhere.Close)
			sends := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
			t.Cleanup(sends.Close)
			p = launch(t, line, "--server", sends.URL, "Go.")
			require.Equal(t, 1, p.End())
		})
	}
}
