package streamtest

import (
	"maps"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

// AskQuestion opens a question of a call's tool, which seal encrypts, and lets the run wait for the answer.
func (p *Player) AskQuestion(call, id string, schema map[string]any, seal func(auth.Request) ([]byte, error)) auth.Request {
	p.tb.Helper()
	r := p.request(call, id, auth.Need{Type: auth.TypeQuestion, Slot: auth.QuestionSlot(p.Row.Owner, call), Tool: "search", Toolset: "function"})
	var err error
	r.Need.Input, err = seal(r)
	check(p.tb, err)
	e := p.event(session.KindRequest, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		ID: id, Name: agent.RequestInput, Args: map[string]any{"interruptId": id, "message": "How many?", "responseSchema": schema, "response_schema": schema},
	}}}})
	e.LongRunningToolIDs = []string{id}
	return p.opened(r, e)
}

// Begin appends an answer of a model that calls the long-running tool "search" under the given id, the interim result of the
// tool if it is not nil, and lets the run wait for the final one.
func (p *Player) Begin(id string, interim map[string]any) auth.Request {
	p.tb.Helper()
	call := p.Running(id)
	e := session.Interim(call, p.id("interim"), p.Heads, interim)
	if interim == nil {
		e.ID = ""
	} else {
		p.Heads = []string{e.ID}
	}
	r := p.request(id, id, auth.Need{Type: auth.TypeResult, Slot: auth.ResultSlot(p.Row.Owner, id), Tool: "search", Toolset: "function"})
	return p.opened(r, e)
}

// Running appends an answer of a model that calls the long-running tool "search", which has not returned yet.
func (p *Player) Running(id string) session.Call {
	p.tb.Helper()
	made := p.event(session.KindModel, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: id, Name: "search", Args: map[string]any{"n": 1}}}}})
	made.LongRunningToolIDs = []string{id}
	call := session.Call{ID: id, Invocation: p.Invocation, Event: made.ID, Agent: "helper", Toolset: "function", Name: "search", Args: []byte(`{"n":1}`)}
	add := p.add(made)
	add.Calls = []session.Call{call}
	p.Heads = []string{made.ID}
	p.append(add)
	return call
}

func (p *Player) request(call, id string, n auth.Need) auth.Request {
	return auth.Request{
		ID: id, Owner: p.Row.Owner, Session: p.Row.ID, WorkflowID: p.Row.WorkflowID, Invocation: p.Invocation, Agent: "helper", Call: call,
		Correlator: "correlator-" + id, Need: n,
	}
}

func (p *Player) opened(r auth.Request, e session.NewEvent) auth.Request {
	p.tb.Helper()
	asked, err := p.Store.Ask(p.tb.Context(), p.add(), r, func(auth.Request) (session.NewEvent, error) { return e, nil })
	check(p.tb, err)
	check(p.tb, p.Store.SetStatus(p.tb.Context(), p.Row, "run", string(wire.StateWaitingInput)))
	return asked.Request
}

// AskKey opens a request for a credential that a person types in, and lets the run wait for it.
func (p *Player) AskKey(call, id string, k auth.Key) auth.Request {
	p.tb.Helper()
	kind, credential := string(agent.AuthAPIKey), map[string]any{}
	scheme := map[string]any{"type": kind, "in": k.In, "name": k.Name}
	if k.Scheme != "" {
		kind = string(agent.AuthHTTP)
		scheme = map[string]any{"type": kind, "scheme": k.Scheme}
		credential["http"] = map[string]any{"scheme": k.Scheme, "credentials": map[string]any{}}
	}
	credential["authType"] = kind
	exchanged := maps.Clone(credential)
	exchanged["oauth2"] = map[string]any{"authUri": Public + "/connect?request=" + id + "&state=correlator-" + id, "state": "correlator-" + id}
	r := p.request(call, id, auth.Need{
		Type: kind, Typed: &k, Tool: "search", Toolset: "notion", Server: "https://mcp.example/mcp", Client: auth.Client{ID: k.Client()},
		Slot:     auth.Slot{Owner: p.Row.Owner, Issuer: "https://mcp.example", Resource: "server:https://mcp.example/mcp", Client: k.Client()},
		Provider: auth.Provider{Issuer: "https://mcp.example"},
	})
	e := p.event(session.KindRequest, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		ID: id, Name: agent.RequestCredential, Args: map[string]any{"functionCallId": call, "authConfig": map[string]any{
			"authScheme": scheme, "rawAuthCredential": credential, "exchangedAuthCredential": exchanged, "credentialKey": "notion",
		}},
	}}}})
	e.LongRunningToolIDs = []string{id}
	add := p.add()
	add.Calls = []session.Call{{ID: call}}
	asked, err := p.Store.Ask(p.tb.Context(), add, r, func(auth.Request) (session.NewEvent, error) { return e, nil })
	check(p.tb, err)
	p.Wait()
	return asked.Request
}
