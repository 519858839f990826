package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/notify"
	"tarry/session"
	"tarry/store"
	"tarry/store/storetest"
)

const (
	secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretB = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

type received struct {
	id   string
	body []byte
	head http.Header
}

// receiver is an endpoint that answers what it is told to.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	got   []received
	codes []int // then 204
	head  http.Header
}

func newReceiver(t *testing.T, codes ...int) *receiver {
	t.Helper()
	r := &receiver{codes: codes, head: http.Header{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, received{req.Header.Get("webhook-id"), body, req.Header})
		code := http.StatusNoContent
		if len(r.codes) > 0 {
			code, r.codes = r.codes[0], r.codes[1:]
		}
		for name, values := range r.head {
			w.Header()[name] = values
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.got...)
}

func (r *receiver) types(t *testing.T) (out []string) {
	t.Helper()
	for _, got := range r.all() {
		var b struct{ Type string }
		require.NoError(t, json.Unmarshal(got.body, &b))
		out = append(out, b.Type)
	}
	return out
}

// world is a store whose clock stands, and requests in it.
type world struct {
	*testing.T
	s   *store.Store
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := storetest.Open(t)
	w := &world{T: t, s: s, now: time.Now().UTC().Truncate(time.Second)}
	s.SetClock(func() time.Time { return w.now })
	return w
}

func (w *world) sender(e ...notify.Endpoint) *notify.Sender {
	w.Helper()
	s, err := notify.New(w.Context(), notify.Config{
		Store: w.s, Endpoints: e, HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, PublicURL: "https://tarry.example", Log: slog.New(slog.DiscardHandler),
		Secrets: func(_ context.Context, src agent.Source) (auth.Secret, error) {
			return auth.NewSecret(map[string]string{"TARRY_SECRET_A": secretA, "TARRY_SECRET_B": secretB}[src.Name]), nil
		},
	})
	require.NoError(w, err)
	require.NoError(w, w.s.ListenWebhooks(w.Context(), e))
	return s
}

func (w *world) ask(o agent.Owner, id string, n auth.Need, deadline time.Time) {
	w.Helper()
	workflow := "w/" + o.App + "/" + o.User
	err := w.s.Create(w.Context(), session.Session{Owner: o, ID: "s", WorkflowID: workflow})
	require.True(w, err == nil || id != "r1", err)
	n.Slot.Owner = o
	_, err = w.s.Ask(w.Context(), session.Append{Owner: o, Session: "s", Run: "run"}, auth.Request{
		ID: id, Owner: o, Session: "s", WorkflowID: workflow, Invocation: "e-1", Agent: "root", Need: n, Correlator: "c-" + id, Deadline: deadline,
	}, func(auth.Request) (session.NewEvent, error) {
		return session.NewEvent{Kind: session.KindRequest, Event: session.Event{ID: "event-" + id, InvocationID: "e-1", Author: "root"}}, nil
	})
	require.NoError(w, err)
}

func login(scopes ...string) auth.Need {
	return auth.Need{
		Type: "mcp", Tool: "send", Scopes: scopes, Slot: auth.Slot{Issuer: "https://id.example/realm", Resource: "https://mcp.example", Client: "dynamic"},
		Provider: auth.Provider{Issuer: "https://id.example/realm"},
	}
}

func hook(r *receiver, name string) notify.Endpoint {
	return notify.Endpoint{Name: name, URL: r.URL, Secrets: []agent.SecretRef{"${env:TARRY_SECRET_A}"}, Apps: []string{"planner"}}
}

var ann = agent.Owner{App: "planner", User: "ann"}

func verified(t *testing.T, secret string, got received) {
	t.Helper()
	hooks, err := webhook.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, hooks.Verify(got.body, got.head))
}

func TestBodyAndSignature(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	e := hook(r, "a")
	e.Secrets = append(e.Secrets, "${env:TARRY_SECRET_B}")
	s := w.sender(e)
	w.ask(ann, "r1", login("read"), time.Time{})
	require.Equal(t, 1, s.Round(t.Context(), e))
	require.Zero(t, s.Round(t.Context(), e))
	got := r.all()
	require.Len(t, got, 1)
	verified(t, secretA, got[0])
	verified(t, secretB, got[0])
	hooks, err := webhook.NewWebhook("whsec_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	require.NoError(t, err)
	require.Error(t, hooks.Verify(got[0].body, got[0].head))
	require.JSONEq(t, `{"type":"run.auth_required","timestamp":"`+w.now.Format(time.RFC3339)+`","data":{"app":"planner","user":"ann","session":"s","invocation":"e-1",
		"request":"r1","agent":"root","tool":"send","provider":"id.example","scopes":["read"],"link":"https://tarry.example/connect?request=r1&state=c-r1"}}`, string(got[0].body))
}

// An endpoint that is down for three tries gets the same webhook-id each time, at the times of the specification.
func TestRetries(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, 500, 302, 404)
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), time.Time{})
	for i, wait := range []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute} {
		if wait > 0 {
			w.now = w.now.Add(wait - time.Second)
			require.Zero(t, s.Round(t.Context(), e), "try %d comes too early", i)
			w.now = w.now.Add(time.Second)
		}
		require.Equal(t, 1, s.Round(t.Context(), e))
	}
	got := r.all()
	require.Len(t, got, 4)
	for _, g := range got {
		require.Equal(t, got[0].id, g.id)
		require.Equal(t, got[0].body, g.body)
		verified(t, secretA, g)
	}
	w.now = w.now.Add(100 * time.Hour)
	require.Zero(t, s.Round(t.Context(), e), "it was delivered")
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500)
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), time.Time{})
	for range 12 {
		s.Round(t.Context(), e)
		w.now = w.now.Add(24 * time.Hour)
		require.NoError(t, w.s.ListenWebhooks(t.Context(), []notify.Endpoint{e}))
	}
	require.Len(t, r.all(), 10)
	left, err := w.s.Webhooks(t.Context(), false, 10)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, notify.Failed, left[0].Status)
	require.Equal(t, "HTTP 500", left[0].Reason)
}

func TestGone(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, 410)
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), time.Time{})
	require.Equal(t, 1, s.Round(t.Context(), e))
	w.ask(ann, "r2", auth.Need{Type: auth.TypeInput, Slot: auth.Slot{Issuer: "x", Client: "y"}}, time.Time{})
	require.NoError(t, w.s.ListenWebhooks(t.Context(), []notify.Endpoint{e}))
	w.now = w.now.Add(time.Hour)
	require.Zero(t, s.Round(t.Context(), e))
	require.Len(t, r.all(), 1)

	e.URL = r.URL + "/new"
	require.NoError(t, w.s.ListenWebhooks(t.Context(), []notify.Endpoint{e}))
	w.ask(ann, "r3", auth.Need{Type: auth.TypeConfirmation, Slot: auth.Slot{Issuer: "z", Client: "y"}}, time.Time{})
	require.Equal(t, 1, w.sender(e).Round(t.Context(), e))
	require.Equal(t, []string{"run.auth_required", "run.approval_required"}, r.types(t))
}

func TestThrottled(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, 429)
	r.head.Set("Retry-After", "600")
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), time.Time{})
	require.Equal(t, 1, s.Round(t.Context(), e))
	w.ask(ann, "r2", auth.Need{Type: auth.TypeInput, Slot: auth.Slot{Issuer: "x", Client: "y"}}, time.Time{})
	w.now = w.now.Add(9 * time.Minute)
	require.Zero(t, s.Round(t.Context(), e), "not even something new")
	w.now = w.now.Add(time.Minute)
	require.Equal(t, 2, s.Round(t.Context(), e))
}

// An endpoint learns of its apps and types alone.
func TestEndpointsSeeTheirApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, others, everything, logins := newReceiver(t), newReceiver(t), newReceiver(t), newReceiver(t)
	hooks := []notify.Endpoint{hook(mine, "mine"), hook(others, "others"), hook(everything, "everything"), hook(logins, "logins")}
	hooks[1].Apps, hooks[2].Apps, hooks[3].Types = []string{"writer"}, []string{"*"}, []string{"credential.*"}
	s := w.sender(hooks...)
	w.ask(ann, "r1", login(), time.Time{})
	w.ask(agent.Owner{App: "writer", User: "ann"}, "r1w", auth.Need{Type: auth.TypeInput, Slot: auth.Slot{Issuer: "x", Client: "y"}}, time.Time{})
	for _, e := range hooks {
		s.Round(t.Context(), e)
	}
	require.Equal(t, []string{"run.auth_required"}, mine.types(t))
	require.Equal(t, []string{"run.input_required"}, others.types(t))
	require.ElementsMatch(t, []string{"run.auth_required", "run.input_required"}, everything.types(t))
	require.Empty(t, logins.types(t))
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), w.now.Add(4*time.Hour))
	w.ask(ann, "r2", auth.Need{Type: auth.TypeConfirmation, Slot: auth.Slot{Issuer: "x", Client: "y"}}, w.now.Add(4*time.Hour))
	require.Equal(t, 2, s.Round(t.Context(), e))
	_, err := w.s.AnswerInput(t.Context(), "r2", func(agent.Owner) bool { return true }, nil, auth.StatusGranted)
	require.NoError(t, err)
	require.Equal(t, 1, s.Round(t.Context(), e))
	w.now = w.now.Add(3 * time.Hour)
	require.Equal(t, 1, s.Round(t.Context(), e))
	w.now = w.now.Add(time.Hour)
	row, err := w.s.Session(t.Context(), ann, "s")
	require.NoError(t, err)
	_, err = w.s.CloseRequest(t.Context(), row, "r1")
	require.NoError(t, err)
	require.Equal(t, 1, s.Round(t.Context(), e))
	require.ElementsMatch(t, []string{"run.auth_required", "run.approval_required"}, r.types(t)[:2])
	require.Equal(t, []string{"approval.granted", "credential.expiring", "credential.expired"}, r.types(t)[2:])
}

// Several servers deliver each webhook once, as long as none of them dies.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	e := hook(r, "a")
	s := w.sender(e)
	for i := range 20 {
		w.ask(ann, "r"+string(rune('a'+i)), auth.Need{Type: auth.TypeInput, Slot: auth.Slot{Issuer: "x" + string(rune('a'+i)), Client: "y"}}, time.Time{})
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for more := true; more; {
				more = s.Round(t.Context(), e) > 0
			}
		})
	}
	group.Wait()
	seen := map[string]bool{}
	for _, got := range r.all() {
		require.False(t, seen[got.id])
		seen[got.id] = true
	}
	require.Len(t, seen, 20)
}

// What a server that was killed had claimed is delivered by another one.
func TestClaimsRunOut(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	e := hook(r, "a")
	s := w.sender(e)
	w.ask(ann, "r1", login(), time.Time{})
	due, err := w.s.DueWebhooks(t.Context(), "a", 10, time.Minute)
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.Zero(t, s.Round(t.Context(), e))
	w.now = w.now.Add(time.Minute)
	require.Equal(t, 1, s.Round(t.Context(), e))
	require.Equal(t, due[0].ID, r.all()[0].id)
}
