package activities

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// maxMeanwhile bounds how often an activity starts over because the credential arrived while it was asking for it.
const maxMeanwhile = 3

// question is what an activity asks a person.
type question struct {
	agent        string
	call         string // empty when a toolset asks
	functionCall string // what ADK calls functionCallId
	parents      []string
	acted        string
	need         auth.Need
	input        *auth.Question     // for needs of auth.TypeInput
	confirm      *auth.Confirmation // for needs of auth.TypeConfirmation
	prompt       *auth.Prompt       // for needs of auth.TypeQuestion
	interim      *tools.Result      // for needs of auth.TypeResult
	artifacts    map[string]int     // that were saved with it
	id           string             // of the request; empty: a new one
}

// tooManyAsked is what model and client hear when a person has too much to answer already. The call did not run.
const tooManyAsked = "Nobody was asked: too many questions of this app wait for this person already. Answer or cancel some of them, then try again."

type asked struct{ auth.Asked }

func (q asked) wire() wire.Asked {
	return wire.Asked{
		Request: q.Request.ID, Asking: q.Event, Deadline: q.Request.Deadline, Confirmation: q.Request.Need.Type == auth.TypeConfirmation,
		Input: !q.Request.Need.Login() && q.Request.Need.Type != auth.TypeConfirmation,
	}
}

// ask opens the request: row, event and mark are one transaction.
func (a *Activities) ask(ctx context.Context, t *attempt, q question) (asked, error) {
	a.fault(ctx, "ask.before")
	node := t.def.Find(q.agent)
	view, err := a.views.View(ctx, t.row, q.parents)
	if err != nil || len(view) == 0 || node == nil {
		return asked{}, a.failed(ctx, "find what is asked for", err)
	}
	invocation := view[len(view)-1].InvocationID
	r := auth.Request{
		ID:         cmp.Or(q.id, t.callID(wire.RoleRequest)),
		Owner:      t.row.Owner,
		Session:    t.row.ID,
		WorkflowID: t.row.WorkflowID,
		Invocation: invocation,
		Agent:      q.agent,
		Call:       q.call,
		Need:       q.need,
		Correlator: rand.Text(),
	}
	if node.Wait.Deadline > 0 {
		r.Deadline = a.Now().Add(node.Wait.Deadline).UTC().Truncate(time.Microsecond) // as a store keeps it
	}
	if r.Need.Input, err = a.seal(r, q); err != nil {
		a.Slog.ErrorContext(ctx, "seal question", "session_id", t.row.ID, "err", err)
		return asked{}, final("question cannot be kept")
	}
	add := t.append()
	add.Acted = q.acted
	out, err := a.Requests.Ask(ctx, add, r, func(r auth.Request) (session.NewEvent, error) { return a.asking(t, q, r) })
	if err != nil {
		return asked{}, a.failed(ctx, "open request", err)
	}
	a.fault(ctx, "ask.after")
	if out.Full {
		a.Slog.WarnContext(ctx, "too many open requests", "session_id", t.row.ID, "app", t.row.Owner.App, "tool", q.need.Tool)
	}
	if !out.Granted && !out.Denied && !out.Full && !out.Often {
		log := a.Slog.With("request_id", out.Request.ID, "session_id", t.row.ID, "tool", q.need.Tool)
		switch {
		case q.confirm != nil:
			log.InfoContext(ctx, "a call waits for a person's approval", "toolset", q.need.Toolset)
		case q.prompt != nil:
			log.InfoContext(ctx, "a tool asks a person", "toolset", q.need.Toolset)
		case q.interim != nil:
			log.InfoContext(ctx, "a call waits for its result")
		case q.input != nil:
			log.InfoContext(ctx, "a server wants input from a person", "server", host(q.need.Server))
		case q.need.Typed != nil:
			log.InfoContext(ctx, "a key is needed", "provider", q.need.Slot.Issuer)
		default:
			log.InfoContext(ctx, "a login is needed", "provider", q.need.Slot.Issuer)
		}
	}
	return asked{out}, nil
}

// seal encrypts what is asked, if it is more than a login.
func (a *Activities) seal(r auth.Request, q question) ([]byte, error) {
	switch {
	case q.input != nil:
		return a.Inputs.Seal(r, *q.input) //nolint:wrapcheck // logged
	case q.confirm != nil:
		return a.Inputs.SealConfirmation(r, *q.confirm) //nolint:wrapcheck // logged
	case q.prompt != nil:
		return a.Inputs.SealPrompt(r, *q.prompt) //nolint:wrapcheck // logged
	}
	return nil, nil
}

// asking is the event that asks. Clients learn of a long-running call by the model's event; one without an id says that there
// is nothing to add to that.
func (a *Activities) asking(t *attempt, q question, r auth.Request) (session.NewEvent, error) {
	if q.interim != nil {
		e := t.interim(q)
		e.InvocationID, e.IsolationScope = r.Invocation, t.scope
		return e, nil
	}
	call, err := a.requesting(q, r)
	if err != nil {
		return session.NewEvent{}, err
	}
	return session.NewEvent{Kind: session.KindRequest, Parents: q.parents, Event: session.Event{
		Branch:             t.def.Branch(q.agent),
		IsolationScope:     t.scope,
		ID:                 t.id(wire.RoleRequest),
		InvocationID:       r.Invocation,
		Author:             q.agent,
		Content:            &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: call}}},
		LongRunningToolIDs: []string{r.ID},
	}}, nil
}

// requesting is the call by which ADK's clients are asked.
func (a *Activities) requesting(q question, r auth.Request) (*genai.FunctionCall, error) {
	switch {
	case q.confirm != nil:
		return a.confirming(q, r.ID)
	case q.prompt != nil:
		return inquiring(q, r.ID)
	}
	config, err := a.authConfig(r)
	if err != nil {
		return nil, err
	}
	return &genai.FunctionCall{ID: r.ID, Name: agent.RequestCredential, Args: map[string]any{"functionCallId": q.functionCall, "authConfig": config}}, nil
}

// authConfig is ADK's AuthConfig. Its authUri is our own page, never the provider's, and no secret is in it.
func (a *Activities) authConfig(r auth.Request) (map[string]any, error) {
	if r.Need.Typed != nil {
		return a.keyConfig(r)
	}
	scopes := map[string]string{}
	for _, s := range r.Need.Scopes {
		scopes[s] = ""
	}
	kind := "oauth2"
	scheme := map[string]any{
		"type": kind,
		"flows": map[string]any{"authorizationCode": map[string]any{
			"authorizationUrl": r.Need.Provider.AuthorizationEndpoint,
			"tokenUrl":         r.Need.Provider.TokenEndpoint,
			"scopes":           scopes,
		}},
	}
	switch r.Need.Type {
	case auth.TypeInput:
		// ADK's clients open authUri whatever the scheme says; the page behind it is ours.
		scheme["description"] = "The server of a tool asks for something before it goes on; the page says what."
		scheme["flows"] = map[string]any{"authorizationCode": map[string]any{
			"authorizationUrl": a.Link(r), "tokenUrl": a.Link(r), "scopes": scopes,
		}}
	case string(agent.AuthOpenIDConnect):
		kind = string(agent.AuthOpenIDConnect)
		scheme = map[string]any{
			"type":                   kind,
			"authorization_endpoint": r.Need.Provider.AuthorizationEndpoint,
			"token_endpoint":         r.Need.Provider.TokenEndpoint,
			"scopes":                 r.Need.Scopes,
		}
	}
	client := map[string]any{}
	if r.Need.Client.ID != "" {
		client["clientId"] = r.Need.Client.ID
	}
	exchanged := map[string]any{"authUri": a.Link(r), "state": r.Correlator}
	if r.Need.Client.ID != "" {
		exchanged["clientId"] = r.Need.Client.ID
	}
	config := map[string]any{
		"authScheme":              scheme,
		"rawAuthCredential":       map[string]any{"authType": kind, "oauth2": client},
		"exchangedAuthCredential": map[string]any{"authType": kind, "oauth2": exchanged},
		"credentialKey":           r.Need.Key,
	}
	return plain(config)
}

// plain turns a value into what JSON makes of it.
func plain(v any) (out map[string]any, err error) {
	body, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		return nil, final("value is not a JSON object")
	}
	return out, nil
}
