package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
	"tarry/store"
)

// database opens one more handle on the same database, as another process would.
type database func(tb testing.TB) *store.Store

// dialects makes an empty database of each kind that this build speaks: an SQLite file and, where there is a server, a schema of
// PostgreSQL.
func dialects() map[string]func(tb testing.TB) database {
	all := map[string]func(tb testing.TB) database{
		"sqlite": func(tb testing.TB) database {
			tb.Helper()
			path := filepath.Join(tb.TempDir(), "tarry.db")
			body, err := migrated()
			require.NoError(tb, err)
			require.NoError(tb, os.WriteFile(path, body, 0o600))
			return func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, path) }
		},
	}
	if testURL() != "" {
		all["postgres"] = func(tb testing.TB) database {
			tb.Helper()
			url := schema(tb)
			return func(tb testing.TB) *store.Store { tb.Helper(); return open(tb, url) }
		}
	}
	return all
}

// migrated is an SQLite file with today's schema: making one for each test takes longer than the tests.
var migrated = sync.OnceValues(func() (body []byte, err error) {
	dir, err := os.MkdirTemp("", "tarry-store-test")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "tarry.db")
	s, err := store.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func open(tb testing.TB, url string) *store.Store {
	tb.Helper()
	s, err := store.Open(context.Background(), url)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func TestMain(m *testing.M) {
	if role := os.Getenv(helperRole); role != "" {
		os.Exit(helper(role))
	}
	os.Exit(m.Run())
}

type testCase struct {
	name string
	run  func(*kit)
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(t, fresh)
		})
	}
}

// suite is what every dialect must do.
func suite(t *testing.T, fresh func(testing.TB) database) {
	t.Helper()
	for _, cases := range [][]testCase{
		sessionCases(), reconcileCases(), inboxCases(), eventCases(), stateCases(), patchCases(), callCases(), askCases(), linkCases(), repinCases(), flowCases(), grantCases(),
		inputCases(), keyCases(), reminderCases(), confirmationCases(), interimCases(), callbackCases(), outboxCases(), definitionCases(), partialCases(), raceCases(), lockCases(), auditCases(), accountCases(), artifactCases(), memoryCases(),
	} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newKit(t, fresh(t)))
			})
		}
	}
}

// kit is a database and the shortest way to bring it into some state.
type kit struct {
	*testing.T
	ctx   context.Context
	again database
	s     *store.Store
	clock *clock
	ids   atomic.Int64
}

func newKit(t *testing.T, d database) *kit {
	t.Helper()
	k := &kit{T: t, ctx: t.Context(), again: d, clock: newClock()}
	k.s = k.handle()
	return k
}

// handle opens another handle that has the same clock.
func (k *kit) handle() *store.Store {
	k.Helper()
	s := k.again(k)
	s.SetClock(k.clock.now)
	return s
}

type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.us.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }

var (
	ann = agent.Owner{App: "planner", User: "ann"}
	bob = agent.Owner{App: "planner", User: "bob"}
	// sameName is another person: users are told apart by app and name.
	sameName = agent.Owner{App: "writer", User: "ann"}
)

const (
	theRun   = "run-1"
	theAgent = "root"
	inv      = "e-1"
)

func (k *kit) id(prefix string) string { return fmt.Sprintf("%s-%d", prefix, k.ids.Add(1)) }

func workflowID(o agent.Owner, id string) string { return "tarry/" + o.App + "/h-" + o.User + "/" + id }

func (k *kit) session(o agent.Owner, id string) session.Session {
	k.Helper()
	require.NoError(k, k.s.Create(k.ctx, session.Session{Owner: o, ID: id, WorkflowID: workflowID(o, id)}))
	return k.row(o, id)
}

func (k *kit) row(o agent.Owner, id string) session.Session {
	k.Helper()
	row, err := k.s.Session(k.ctx, o, id)
	require.NoError(k, err)
	standing, err := k.s.Standing(k.ctx, o, id)
	require.NoError(k, err)
	bare := row
	bare.Initial, bare.Patched = standing.Initial, standing.Patched
	require.Equal(k, bare, standing)
	require.Empty(k, standing.Initial)
	require.Empty(k, standing.Patched)
	return row
}

func (k *kit) post(row session.Session, id, invocation, text string) {
	k.Helper()
	require.NoError(k, k.s.Post(k.ctx, row.Owner, row.ID, "hash", "chat", message(id, invocation, text)))
}

func (k *kit) take(row session.Session, run, eventID string, heads ...string) (*session.Record, string) {
	k.Helper()
	r, inbox, err := k.s.Take(k.ctx, row, run, eventID, heads)
	require.NoError(k, err)
	return r, inbox
}

// append adds events as a run does.
func (k *kit) append(row session.Session, run string, events ...session.NewEvent) []*session.Record {
	k.Helper()
	out, err := k.s.Append(k.ctx, session.Append{Owner: row.Owner, Session: row.ID, Run: run, Events: events})
	require.NoError(k, err)
	return out
}

// call appends a model's answer that makes calls with these ids.
func (k *kit) calls(row session.Session, run, event string, parents []string, ids ...string) {
	k.Helper()
	e := said(event, session.KindModel, theAgent, "", parents...)
	e.InvocationID = inv
	add := session.Append{Owner: row.Owner, Session: row.ID, Run: run, Events: []session.NewEvent{e}}
	for _, id := range ids {
		add.Calls = append(add.Calls, session.Call{ID: id, Invocation: inv, Event: event, Agent: theAgent, Toolset: "mail", Name: "send", Args: []byte(`{"to":"x"}`)})
	}
	_, err := k.s.Append(k.ctx, add)
	require.NoError(k, err)
}

func answerOf(row session.Session, run, call, event string, parents ...string) session.Append {
	return session.Append{
		Owner: row.Owner, Session: row.ID, Run: run, Answers: map[string]string{call: event},
		Events: []session.NewEvent{said(event, session.KindResponse, theAgent, "", parents...)},
	}
}

func (k *kit) timeline(row session.Session) []string {
	k.Helper()
	view, err := k.s.Timeline(k.ctx, row.Owner, row.ID, 0)
	require.NoError(k, err)
	k.reread(row, view)
	return ids(view)
}

// reread gives the same timeline to a reader that knows any part of it, and reads nothing that is known.
func (k *kit) reread(row session.Session, view []*session.Record) {
	k.Helper()
	known := map[string]*session.Record{"no-such-event": {Seq: 1}}
	for _, r := range view {
		again, err := k.s.Reread(k.ctx, row.Owner, row.ID, known)
		require.NoError(k, err)
		for i, r := range again {
			if known[r.ID] != nil {
				require.Same(k, known[r.ID], r)
				again[i] = view[i]
			}
		}
		require.Equal(k, view, again)
		known[r.ID] = &session.Record{Event: session.Event{ID: r.ID}, Seq: r.Seq}
	}
	_, err := k.s.Reread(k.ctx, agent.Owner{App: row.Owner.App, User: "eve"}, row.ID, known)
	require.ErrorIs(k, err, session.ErrNotFound)
}

func ids(view []*session.Record) []string {
	out := []string{}
	for _, r := range view {
		out = append(out, r.ID)
	}
	return out
}

// tips asks where the session stands, by way of an ending that changes nothing else.
func (k *kit) tips(row session.Session, run string) []string {
	k.Helper()
	tips, err := k.s.Finish(k.ctx, row, session.Ending{Run: run, Invocation: "none", Status: "done", Append: session.Append{Owner: row.Owner, Session: row.ID}})
	require.NoError(k, err)
	return tips
}

func slot(o agent.Owner) auth.Slot {
	return auth.Slot{Owner: o, Issuer: "https://id.example", Resource: "https://mcp.example/mcp", Client: auth.ClientDynamic}
}

func need(o agent.Owner, scopes ...string) auth.Need {
	return auth.Need{
		Slot: slot(o), Scopes: scopes, Key: "mail", Type: "mcp", Tool: "send", Toolset: "mail", Server: "https://mcp.example/mcp",
		Provider: auth.Provider{Issuer: "https://id.example", AuthorizationEndpoint: "https://id.example/auth", TokenEndpoint: "https://id.example/token"},
	}
}

// question makes what an activity passes to Ask.
func question(row session.Session, call, request string, n auth.Need, parents ...string) (session.Append, auth.Request) {
	e := said("event-"+request, session.KindRequest, theAgent, "", parents...)
	return session.Append{Owner: row.Owner, Session: row.ID, Run: theRun, Events: []session.NewEvent{e}},
		auth.Request{
			ID: request, Owner: row.Owner, Session: row.ID, WorkflowID: row.WorkflowID, Invocation: inv, Agent: theAgent, Call: call, Need: n, Correlator: "c-" + request,
		}
}

// render makes the event of a question, as it is.
func render(a session.Append) func(auth.Request) (session.NewEvent, error) {
	return func(auth.Request) (session.NewEvent, error) { return a.Events[0], nil }
}

func (k *kit) ask(row session.Session, call, request string, n auth.Need, parents ...string) auth.Asked {
	k.Helper()
	a, r := question(row, call, request, n, parents...)
	out, err := k.s.Ask(k.ctx, a, r, render(a))
	require.NoError(k, err)
	return out
}

// waiting is a session with one call that waits for a login.
func (k *kit) waiting(o agent.Owner, id string, scopes ...string) (session.Session, string) {
	k.Helper()
	row := k.session(o, id)
	call, request := "call-"+id+o.App+o.User, "req-"+id+o.App+o.User
	k.calls(row, theRun, "model-"+call, nil, call)
	asked := k.ask(row, call, request, need(o, scopes...), "model-"+call)
	require.Equal(k, request, asked.Request.ID)
	return row, request
}

func (k *kit) request(id string) auth.Request {
	k.Helper()
	r, err := k.s.Request(k.ctx, id, anyone)
	require.NoError(k, err)
	return r
}

func anyone(agent.Owner) bool { return true }

func (k *kit) flow(request string) oauth.Flow {
	k.Helper()
	r := k.request(request)
	return oauth.Flow{
		StateHash: k.id("state"), CookieHash: "cookie", Request: request, Owner: r.Owner, Verifier: []byte("sealed verifier"), Nonce: []byte("sealed nonce"),
		Provider: r.Need.Provider, Client: auth.Client{ID: "client"}, RedirectURI: "https://tarry.example/cb", Scopes: r.Need.Scopes,
		Resource: r.Need.Slot.Resource, Expires: k.clock.now().Add(15 * time.Minute),
	}
}

// begun is a live flow.
func (k *kit) begun(request string) string {
	k.Helper()
	f := k.flow(request)
	require.NoError(k, k.s.BeginFlow(k.ctx, f, 100))
	return f.StateHash
}

// exchanging is a flow whose code is written ahead.
func (k *kit) exchanging(request string) string {
	k.Helper()
	state := k.begun(request)
	_, err := k.s.StartExchange(k.ctx, state, []byte("sealed code"), "code-hash", time.Minute)
	require.NoError(k, err)
	return state
}

func grant(scopes ...string) oauth.Grant {
	return oauth.Grant{
		Scopes: scopes, Access: []byte("sealed access"), Refresh: []byte("sealed refresh"),
		Provider: auth.Provider{Issuer: "https://id.example", TokenEndpoint: "https://id.example/token"}, Client: auth.Client{ID: "client"},
	}
}

// login answers a request from begin to commit.
func (k *kit) login(request string, scopes ...string) []auth.Request {
	k.Helper()
	woken, err := k.s.Commit(k.ctx, k.exchanging(request), grant(scopes...))
	require.NoError(k, err)
	return woken
}

func (k *kit) grants(o agent.Owner) []oauth.Grant {
	k.Helper()
	sl := slot(o)
	found, err := k.s.Grants(k.ctx, oauth.GrantQuery{Owner: o, Domain: sl.Domain, Resource: sl.Resource, Client: sl.Client})
	require.NoError(k, err)
	return found
}

// outgoing takes every message that is due, by subject.
func (k *kit) outgoing() map[string]string {
	k.Helper()
	due, err := k.s.Due(k.ctx, 1000, time.Microsecond)
	require.NoError(k, err)
	k.clock.advance(time.Millisecond) // the claims are over
	out := map[string]string{}
	for _, m := range due {
		require.Empty(k, out[m.Subject], "two messages about %s", m.Subject)
		out[m.Subject] = m.Signal + " " + string(m.Payload)
	}
	return out
}

// audited lists an owner's rows of the audit log, oldest first.
func (k *kit) audited(o agent.Owner) []auth.AuditRow {
	k.Helper()
	page, err := k.s.Audit(k.ctx, auth.AuditQuery{App: o.App, User: o.User}, func(agent.Owner) bool { return true }, 1000)
	require.NoError(k, err)
	return page.Rows
}

func (k *kit) audits(o agent.Owner) []string {
	k.Helper()
	out := []string{}
	for _, row := range k.audited(o) {
		out = append(out, row.Action)
	}
	return out
}

func message(id, invocation, text string) session.Message {
	return session.Message{ID: id, Invocation: invocation, Event: session.Event{Content: content("user", text)}}
}
