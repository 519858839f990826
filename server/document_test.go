package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/engine"
	"tarry/internal/wiring"
	"tarry/server"
	"tarry/server/openapi/openapitest"
	"tarry/server/signin"
	"tarry/server/stream/streamtest"
	"tarry/session"
	"tarry/store/storetest"
	"tarry/wire"
)

// deaf is a Temporal that takes every signal and has no history.
type deaf struct{ client.Client }

func (deaf) SignalWorkflow(context.Context, string, string, string, any) error { return nil }

func (deaf) GetWorkflowHistory(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
	return nothing{}
}

type nothing struct{}

func (nothing) HasNext() bool { return true }

func (nothing) Next() (*history.HistoryEvent, error) { return nil, serviceerror.NewNotFound("none") }

// described is a whole server behind a proxy that signs people in, without a worker.
type described struct {
	t       *testing.T
	parts   *wiring.Parts
	handler http.Handler
	logs    *bytes.Buffer
	peer    string
}

func newDescribed(t *testing.T) *described {
	t.Helper()
	public, err := url.Parse("http://localhost:8080")
	require.NoError(t, err)
	dir := t.TempDir()
	d := &described{t: t, logs: &bytes.Buffer{}, peer: "192.0.2.7:1"}
	log := slog.New(slog.NewTextHandler(d.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d.parts, err = wiring.Open(t.Context(), wiring.Config{DatabaseURL: auth.NewSecret(storetest.URL(t)), DataDir: dir, PublicURL: public, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.parts.Close()) })
	require.NoError(t, d.parts.Store.Publish(t.Context(), &agent.Definition{App: "tickets", Root: &agent.Agent{Name: "helper", Kind: agent.KindLLM, Description: "answers tickets"}}))
	steer, err := engine.New(engine.Config{Client: deaf{}, UserKey: auth.NewSecret(strings.Repeat("k", 32))})
	require.NoError(t, err)
	mode, err := server.SignIn(d.parts, signin.Config{
		PublicURL: public, Log: log, Proxy: &signin.Proxy{Header: "X-User", Issuer: "proxy", Peers: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}},
	})
	require.NoError(t, err)
	s, err := server.New(server.Config{Parts: d.parts, Engine: steer, PublicURL: public, SignIn: mode, Log: log, Version: "v0"})
	require.NoError(t, err)
	d.handler = openapitest.CheckAnswers(t, s.Handler())
	return d
}

// things of one person, of every kind; their ids begin with the person's name.
func (d *described) things(name string) (owner agent.Owner, known map[string][]string) {
	d.t.Helper()
	owner = agent.Owner{App: "tickets", User: signin.UserID("proxy", name)}
	known = map[string][]string{"user": {owner.User}}
	play := func(kind string) *streamtest.Player {
		id := name + "-" + kind
		p := streamtest.New(d.t, d.parts.Store, owner, id)
		p.Post("PRIVATE of "+name, wire.ModeChat)
		p.Take()
		made := p.Say("PRIVATE answer to "+name, id+"-call")
		known["session"] = append(known["session"], id)
		known["call"] = append(known["call"], id+"-call")
		known["event"] = append(known["event"], made.ID)
		known["request"] = append(known["request"], id+"-request")
		known["invocation"] = append(known["invocation"], p.Invocation)
		return p
	}
	play("login").Ask(name+"-login-call", name+"-login-request")
	play("key").AskKey(name+"-key-call", name+"-key-request", auth.Key{In: "header", Name: "X-Key"})
	play("question").AskQuestion(name+"-question-call", name+"-question-request", map[string]any{"type": "integer"}, func(r auth.Request) ([]byte, error) {
		return d.parts.Inputs.SealPrompt(r, auth.Prompt{Message: "PRIVATE question to " + name, Schema: []byte(`{"type":"integer"}`)})
	})
	play("result").Begin(name+"-result-request", nil)
	grant, err := d.parts.Store.Keep(d.t.Context(), oauth.Grant{Slot: auth.Slot{Owner: owner, Issuer: "https://id.example", Client: auth.ClientDynamic}, Access: []byte("sealed"), Account: oauth.Account{Label: "PRIVATE account of " + name}})
	require.NoError(d.t, err)
	known["account"] = []string{grant.ID}
	_, err = d.parts.Store.SaveArtifact(d.t.Context(), owner, name+"-login", session.NewArtifact{Name: name + ".txt", Part: &genai.Part{Text: "PRIVATE file of " + name}})
	require.NoError(d.t, err)
	known["name"] = []string{name + ".txt"}
	return owner, known
}

// As the document describes them, and slightly otherwise, bob sends requests about everything that he and ann have. Nothing breaks,
// refusals have the shape that is described, and nothing of ann's is told or changed.
func TestRequestsMadeFromTheDocument(t *testing.T) {
	t.Parallel()
	const each = 30 // requests of each operation
	d := newDescribed(t)
	ann, known := d.things("ann")
	_, bobs := d.things("bob")
	for name, values := range bobs {
		known[name] = append(known[name], values...)
	}
	// Mostly what bob may: behind a refusal there is little to find.
	known["user"] = append(known["user"], bobs["user"][0], signin.Me, signin.Me, signin.Me)
	known["app"] = []string{"tickets", "tickets", "tickets", "tickets", "other"}
	for property, of := range map[string]string{"appName": "app", "userId": "user", "sessionId": "session", "invocationId": "invocation", "functionCallEventId": "event", "id": "request"} {
		known[property] = known[of]
	}
	before := d.stand(ann)

	checker, err := openapitest.New()
	require.NoError(t, err)
	g := checker.NewGenerator(43, known)
	answered := map[int]int{}
	for _, operation := range checker.Operations() {
		for range each {
			ctx, cancel := context.WithTimeout(t.Context(), patienceWith(operation))
			r, err := g.Request(ctx, operation)
			require.NoError(t, err)
			r.RemoteAddr = d.peer
			r.Header.Set("X-User", "bob")
			w := httptest.NewRecorder()
			d.handler.ServeHTTP(w, r)
			cancel()
			answered[w.Code]++
			assert.True(t, w.Code < 500 || w.Code == http.StatusNotImplemented, "%s %s: %d %.300s\n%s", r.Method, r.URL, w.Code, w.Body, d.logs)
			assert.NotContains(t, d.logs.String(), "panic", "%s %s", r.Method, r.URL)
			d.logs.Reset()
			for _, mark := range []string{"of ann", "to ann", "correlator-ann"} {
				require.NotContains(t, w.Body.String(), mark, "%s %s", r.Method, r.URL)
			}
		}
	}
	t.Logf("answers by status: %v", answered)
	require.Greater(t, answered[http.StatusOK], 300, "the document makes requests that are served")
	require.Equal(t, before, d.stand(ann))
}

// patienceWith is short for what waits for a run, since none goes on.
func patienceWith(o openapitest.Operation) time.Duration {
	if strings.HasPrefix(o.Path, "/run") || strings.HasSuffix(o.Path, "/events") || o.Method == http.MethodDelete {
		return 25 * time.Millisecond
	}
	return 20 * time.Second
}

// stand is all that there is of somebody, as texts.
func (d *described) stand(owner agent.Owner) (out []string) {
	d.t.Helper()
	ctx := d.t.Context()
	rows, err := d.parts.Store.Sessions(ctx, owner, 100)
	require.NoError(d.t, err)
	for _, row := range rows {
		view, err := d.parts.Store.Timeline(ctx, owner, row.ID, 0)
		require.NoError(d.t, err)
		out = append(out, row.ID+" "+row.Status)
		for _, e := range view {
			out = append(out, string(e.Body))
		}
		names, err := d.parts.Store.ArtifactNames(ctx, owner, row.ID)
		require.NoError(d.t, err)
		out = append(out, names...)
	}
	requests, err := d.parts.Store.Requests(ctx, owner, false, 100)
	require.NoError(d.t, err)
	for _, r := range requests {
		out = append(out, r.ID+" "+string(r.Status))
	}
	accounts, err := d.parts.Store.Accounts(ctx, oauth.AccountQuery{App: owner.App, User: owner.User, Limit: 10}, func(o agent.Owner) bool { return o == owner })
	require.NoError(d.t, err)
	for _, g := range accounts.Grants {
		out = append(out, g.ID)
	}
	return out
}
