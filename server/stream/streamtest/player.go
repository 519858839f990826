package streamtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
	"tarry/store"
	"tarry/wire"
)

// Patience bounds every wait of a test.
const Patience = 20 * time.Second

// Public is the public URL in the events of a [Player].
const Public = "http://localhost:8080"

// Open opens a store in a directory of the test's own, with one published app, "tickets".
func Open(tb testing.TB) (*store.Store, string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "tarry.db")
	s := Reopen(tb, path)
	check(tb, s.Publish(tb.Context(), &agent.Definition{App: "tickets", Root: &agent.Agent{Name: "helper", Kind: agent.KindLLM, Description: "answers tickets"}}))
	return s, path
}

// Reopen opens the store at path.
func Reopen(tb testing.TB, path string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), path)
	check(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// WorkflowID is what the tests use in place of engine's.
func WorkflowID(owner agent.Owner, id string) string {
	return wire.WorkflowID(owner.App, owner.User, id)
}

// Player is the run of one session. Its methods fail the test on errors; they are called from the test's goroutine.
type Player struct {
	tb         testing.TB
	Store      *store.Store
	Row        session.Session
	Invocation string
	Heads      []string
	n          int
}

// New plays a session, which it creates unless it is there.
func New(tb testing.TB, s *store.Store, owner agent.Owner, id string) *Player {
	tb.Helper()
	row, err := s.Session(tb.Context(), owner, id)
	if err != nil {
		check(tb, s.Create(tb.Context(), session.Session{Owner: owner, ID: id, WorkflowID: WorkflowID(owner, id)}))
		row, err = s.Session(tb.Context(), owner, id)
		check(tb, err)
	}
	return &Player{tb: tb, Store: s, Row: row}
}

// Post sends a message and returns its invocation.
func (p *Player) Post(text string, mode wire.Mode) string {
	p.tb.Helper()
	invocation := "e-" + p.id("post")
	check(p.tb, p.Store.Post(p.tb.Context(), p.Row.Owner, p.Row.ID, "hash", string(mode), session.Message{
		ID: p.id("inbox"), Invocation: invocation,
		Event: session.Event{Author: agent.UserAuthor, Content: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: text}}}},
	}))
	return invocation
}

// Take waits for the next message and begins its invocation.
func (p *Player) Take() *session.Record {
	p.tb.Helper()
	id := p.id("user")
	var out *session.Record
	Eventually(p.tb, "a message", func() bool {
		r, _, err := p.Store.Take(p.tb.Context(), p.Row, "run", id, nil)
		check(p.tb, err)
		out = r
		return r != nil
	})
	p.Invocation, p.Heads = out.InvocationID, []string{out.ID}
	return out
}

// Say appends an answer of a model, with calls of the tool "search" under the given ids.
func (p *Player) Say(text string, calls ...string) *session.Record {
	p.tb.Helper()
	content := &genai.Content{Role: genai.RoleModel}
	if text != "" {
		content.Parts = append(content.Parts, &genai.Part{Text: text})
	}
	e := p.event(session.KindModel, content)
	add := p.add(e)
	for _, id := range calls {
		content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "search", Args: map[string]any{"query": "<b>&\u2028"}}})
		add.Calls = append(add.Calls, session.Call{ID: id, Invocation: p.Invocation, Event: e.ID, Agent: "helper", Toolset: "notion", Name: "search", Args: []byte(`{}`)})
	}
	p.Heads = []string{e.ID}
	return p.append(add)
}

// Write appends what an agent writes to the state.
func (p *Player) Write(delta map[string]any) *session.Record {
	p.tb.Helper()
	e := p.event(session.KindAgent, nil)
	e.Actions.StateDelta = delta
	add := p.add(e)
	p.Heads = []string{e.ID}
	return p.append(add)
}

// Respond appends the result of a call that acted on a request, or on none.
func (p *Player) Respond(call, request string) *session.Record {
	p.tb.Helper()
	e := p.event(session.KindResponse, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: call, Name: "search", Response: map[string]any{"found": call},
	}}}})
	add := p.add(e)
	add.Answers = map[string]string{call: e.ID}
	if request != "" {
		add.Acted, add.Status = request, string(wire.StateRunning)
	}
	p.Heads = append(p.Heads, e.ID)
	return p.append(add)
}

// Ask opens a request on behalf of a call and lets the run wait for it.
func (p *Player) Ask(call, id string) auth.Request {
	p.tb.Helper()
	r := p.AskOnly(call, id)
	p.Wait()
	return r
}

// AskOnly opens a request; other branches go on.
func (p *Player) AskOnly(call, id string) auth.Request {
	p.tb.Helper()
	issuer := "https://" + id + ".example"
	r := auth.Request{
		ID: id, Owner: p.Row.Owner, Session: p.Row.ID, WorkflowID: p.Row.WorkflowID, Invocation: p.Invocation, Agent: "helper", Call: call,
		Correlator: "correlator-" + id,
		Need: auth.Need{
			Slot: auth.Slot{Owner: p.Row.Owner, Issuer: issuer, Client: auth.ClientDynamic}, Scopes: []string{"read"}, Tool: "search", Toolset: "notion",
			Server: "https://mcp.example", Provider: auth.Provider{Issuer: issuer},
		},
	}
	e := p.event(session.KindRequest, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		ID: id, Name: agent.RequestCredential, Args: map[string]any{"functionCallId": call, "authConfig": AuthConfig(id)},
	}}}})
	e.LongRunningToolIDs = []string{id}
	add := p.add()
	if call != "" {
		add.Calls = []session.Call{{ID: call}}
	}
	asked, err := p.Store.Ask(p.tb.Context(), add, r, func(auth.Request) (session.NewEvent, error) { return e, nil })
	check(p.tb, err)
	return asked.Request
}

// AskApproval opens a request for a person's approval of a call and lets the run wait for it.
func (p *Player) AskApproval(call, id string) auth.Request {
	p.tb.Helper()
	r := auth.Request{
		ID: id, Owner: p.Row.Owner, Session: p.Row.ID, WorkflowID: p.Row.WorkflowID, Invocation: p.Invocation, Agent: "helper", Call: call,
		Correlator: "correlator-" + id,
		Need:       auth.Need{Type: auth.TypeConfirmation, Slot: auth.ConfirmationSlot(p.Row.Owner, call, false), Tool: "search", Toolset: "notion"},
	}
	e := p.event(session.KindRequest, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		ID: id, Name: agent.RequestConfirmation, Args: map[string]any{
			"originalFunctionCall": map[string]any{"id": call, "name": "search", "args": map[string]any{}},
			"toolConfirmation":     map[string]any{"hint": "Search?", "confirmed": false},
		},
	}}}})
	e.LongRunningToolIDs = []string{id}
	asked, err := p.Store.Ask(p.tb.Context(), p.add(), r, func(auth.Request) (session.NewEvent, error) { return e, nil })
	check(p.tb, err)
	check(p.tb, p.Store.SetStatus(p.tb.Context(), p.Row, "run", string(wire.StateWaitingConfirmation)))
	return asked.Request
}

// Wait writes that every branch waits.
func (p *Player) Wait() {
	p.tb.Helper()
	check(p.tb, p.Store.SetStatus(p.tb.Context(), p.Row, "run", string(wire.StateWaitingCredential)))
}

// Grant completes the login of a request, as the callback does.
func (p *Player) Grant(request string) {
	p.tb.Helper()
	state := p.flow(request)
	_, err := p.Store.StartExchange(p.tb.Context(), state, []byte("code"), "", time.Minute)
	check(p.tb, err)
	_, err = p.Store.Commit(p.tb.Context(), state, oauth.Grant{ID: p.id("grant"), Scopes: []string{"read"}, Access: []byte("sealed")})
	check(p.tb, err)
}

// Deny refuses the login of a request.
func (p *Player) Deny(request string) {
	p.tb.Helper()
	check(p.tb, p.Store.Deny(p.tb.Context(), p.flow(request), "access_denied"))
}

func (p *Player) flow(request string) string {
	p.tb.Helper()
	sum := sha256.Sum256([]byte(request + p.id("state")))
	state := hex.EncodeToString(sum[:])
	check(p.tb, p.Store.BeginFlow(p.tb.Context(), oauth.Flow{StateHash: state, Request: request, Owner: p.Row.Owner, Expires: time.Now().Add(time.Minute)}, 9))
	return state
}

// Finish ends the invocation; one that did not end well gets the event that says so.
func (p *Player) Finish(end string, closed bool) {
	p.tb.Helper()
	var add session.Append
	if end != wire.EndDone {
		e := p.event(session.KindNotice, nil)
		e.ErrorCode, e.ErrorMessage = "FAILED", "The invocation "+end+"."
		add = p.add(e)
	}
	_, err := p.Store.Finish(p.tb.Context(), p.Row, session.Ending{Run: "run", Invocation: p.Invocation, Status: end, Closed: closed, Append: add})
	check(p.tb, err)
}

func (p *Player) event(kind session.Kind, content *genai.Content) session.NewEvent {
	return session.NewEvent{Kind: kind, Parents: p.Heads, Event: session.Event{
		ID: p.id("event"), InvocationID: p.Invocation, Author: "helper", Content: content,
	}}
}

func (p *Player) add(events ...session.NewEvent) session.Append {
	return session.Append{Owner: p.Row.Owner, Session: p.Row.ID, Run: "run", Events: events}
}

func (p *Player) append(a session.Append) *session.Record {
	p.tb.Helper()
	out, err := p.Store.Append(p.tb.Context(), a)
	check(p.tb, err)
	return out[0]
}

func (p *Player) id(kind string) string {
	p.n++
	return p.Row.Owner.User + "-" + p.Row.ID + "-" + kind + "-" + strconv.Itoa(p.n)
}

// AuthConfig is what a run asks with.
func AuthConfig(request string) map[string]any {
	return map[string]any{
		"authScheme": map[string]any{"type": "oauth2", "flows": map[string]any{"authorizationCode": map[string]any{
			"authorizationUrl": "https://idp.example/auth", "tokenUrl": "https://idp.example/token", "scopes": map[string]any{"read": ""},
		}}},
		"rawAuthCredential": map[string]any{"authType": "oauth2", "oauth2": map[string]any{"clientId": "cid"}},
		"exchangedAuthCredential": map[string]any{"authType": "oauth2", "oauth2": map[string]any{
			"clientId": "cid", "authUri": Public + "/connect?request=" + request + "&state=correlator-" + request, "state": "correlator-" + request,
		}},
		"credentialKey": "notion",
	}
}

// Eventually waits until ok says so.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			tb.Fatalf("waited %s for %s", Patience, what)
		case <-tick.C:
		}
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
