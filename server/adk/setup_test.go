package adk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth/inputs"
	"tarry/auth/keys"
	"tarry/auth/vault"
	"tarry/server/adk"
	"tarry/server/openapi/openapitest"
	"tarry/server/stream"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/store"
)

var ann = agent.Owner{App: "tickets", User: "ann"}

// bundle is a server over a real store; the test plays the workflow.
type bundle struct {
	t       *testing.T
	store   *store.Store
	path    string
	handler *adk.Handler
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

type canceller struct{ b *bundle }

func (c canceller) Cancel(_ context.Context, s session.Session, invocation string) error {
	c.b.cancels <- s.ID + "/" + invocation
	return nil
}

func setup(t *testing.T) *bundle {
	t.Helper()
	s, path := streamtest.Open(t)
	b := &bundle{t: t, store: s, path: path, cancels: make(chan string, 10)}
	b.serve(s)
	return b
}

func (b *bundle) serve(s *store.Store) {
	b.t.Helper()
	b.store = s
	v, err := vault.Open(b.t.Context(), vault.Config{KeysetFile: b.path + ".keys", Checks: s})
	require.NoError(b.t, err)
	b.handler = &adk.Handler{
		Log: s, Partials: s, Apps: s, Find: s, Requests: s, Starter: starter{s}, Canceller: canceller{b}, Artifacts: s, Memory: s,
		Operator: func(r *http.Request) bool { return r.Header.Get("X-Operator") != "" },
		Owner: func(_ *http.Request, app, user string) (agent.Owner, error) {
			owner := agent.Owner{App: app, User: user}
			if user == "eve" {
				return agent.Owner{}, errors.New("no")
			}
			return owner, owner.Validate()
		},
		Confirmations: &inputs.Service{Store: s, Vault: v, Log: slog.New(slog.DiscardHandler)},
		Answers:       &inputs.Service{Store: s, Vault: v, Log: slog.New(slog.DiscardHandler)},
		Keys:          &keys.Service{Store: s, Vault: v, Log: slog.New(slog.DiscardHandler)},
		Wake:          func() { b.woken.Add(1) }, PublicURL: streamtest.Public, Version: "v0.1.0",
		Logger: slog.New(slog.DiscardHandler), Poll: time.Millisecond, CancelWait: time.Millisecond,
	}
	mux := http.NewServeMux()
	b.handler.Mount(mux)
	server := httptest.NewServer(openapitest.Check(b.t, mux))
	b.t.Cleanup(server.Close)
	b.url = server.URL
}

// do sends a request; body is JSON text, or a value that becomes some.
func (b *bundle) do(method, path string, body any) (int, string) {
	b.t.Helper()
	response := b.open(b.t.Context(), method, path, body)
	defer response.Body.Close()
	out, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.StatusCode, strings.TrimSuffix(string(out), "\n")
}

// open sends a request as ADK's web UI does.
func (b *bundle) open(ctx context.Context, method, path string, body any) *http.Response {
	b.t.Helper()
	accept := "application/json"
	if path == "/run_sse" {
		accept = "text/event-stream"
	}
	return b.accepting(ctx, accept, method, path, body)
}

func (b *bundle) accepting(ctx context.Context, accept, method, path string, body any) *http.Response {
	b.t.Helper()
	var text string
	switch body := body.(type) {
	case nil:
	case string:
		text = body
	default:
		text = encode(b.t, body)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(text))
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	response, err := (&http.Client{}).Do(r)
	require.NoError(b.t, err)
	return response
}

// frames reads a whole event stream. Each frame of an event has an id, and none goes back.
func (b *bundle) frames(response *http.Response) (data []string) {
	b.t.Helper()
	defer response.Body.Close()
	require.Equal(b.t, "text/event-stream", response.Header.Get("Content-Type"))
	var last, at int64
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			cursor, err := stream.ParseCursor(id)
			if err != nil { // in a goroutine that must go on
				b.t.Error(err)
				return nil
			}
			at = cursor.Seq
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if !strings.Contains(text, `"error"`) && !assert.Greater(b.t, at, last) {
				return nil
			}
			last, data = at, append(data, text)
		}
	}
	require.NoError(b.t, lines.Err())
	return data
}

// sse runs a request to its end in the background.
func (b *bundle) sse(body any) <-chan []string {
	b.t.Helper()
	out := make(chan []string, 1)
	response := b.open(b.t.Context(), http.MethodPost, "/run_sse", body) //nolint:bodyclose // frames closes it
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	go func() {
		out <- b.frames(response)
	}()
	return out
}

func (b *bundle) player(id string) *streamtest.Player {
	b.t.Helper()
	return streamtest.New(b.t, b.store, ann, id)
}

// say is a run request with words.
func say(id, text string) map[string]any {
	return request(id, map[string]any{"text": text})
}

func request(id string, parts ...map[string]any) map[string]any {
	return map[string]any{
		"appName": "tickets", "userId": "ann", "sessionId": id, "streaming": false, "stateDelta": nil,
		"newMessage": map[string]any{"role": "user", "parts": parts},
	}
}

func answer(id string, response any) map[string]any {
	return map[string]any{"functionResponse": map[string]any{"id": id, "name": agent.RequestCredential, "response": response}}
}

// pending is a session that waits for request r1, which its call call-1 made.
func (b *bundle) pending() *streamtest.Player {
	b.t.Helper()
	p := b.player("s1")
	p.Post("look", "chat")
	p.Take()
	p.Say("", "call-1")
	p.Ask("call-1", "r1")
	return p
}

func encode(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	require.NoError(t, err)
	return string(body)
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &out), text)
	return out
}

func texts(records ...*session.Record) []string {
	out := make([]string, 0, len(records))
	for _, r := range records {
		out = append(out, string(r.Body))
	}
	return out
}
