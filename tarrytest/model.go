package tarrytest

import (
	"context"
	"iter"
	"sync"

	"tarry/models"
	"tarry/models/scripted"
)

// Turn is one answer of a [Model]: a text, calls of tools, or an error.
type Turn struct{ step scripted.Step }

// Says is an answer in words. It may hold the placeholders of package models/scripted, such as {{last_response.title}}.
func Says(text string) Turn { return Turn{scripted.Step{Text: text}} }

// Calls is an answer that calls a tool. Several of them joined by [Turn.And] are parallel calls.
func Calls(tool string, args map[string]any) Turn {
	return Turn{scripted.Step{Calls: []scripted.Call{{Name: tool, Args: args}}}}
}

// Fails is a provider's error with an HTTP status; 0 is a network failure.
func Fails(status int) Turn { return Turn{scripted.Step{Error: &scripted.Failure{Status: status}}} }

// And joins the calls and words of two turns into one.
func (t Turn) And(u Turn) Turn {
	t.step.Calls = append(t.step.Calls[:len(t.step.Calls):len(t.step.Calls)], u.step.Calls...)
	t.step.Text += u.step.Text
	return t
}

// Model gives the answers that it was made with and records what it was asked. Which answer comes follows from the
// conversation alone, so that a repeated call gets the same one. Safe for concurrent use.
type Model struct {
	script scripted.Script
	answer func(ctx context.Context, req *models.Request) (*models.Response, error)

	mu       sync.Mutex
	requests []*models.Request
}

// NewModel makes a model whose n-th turn since the person's last words is the n-th of turns, for every agent that
// [Model.For] does not speak for.
func NewModel(turns ...Turn) *Model {
	m := &Model{}
	return m.For(scripted.AnyAgent, turns...)
}

// For sets the turns of one agent. Call it before the model is used; it returns m.
func (m *Model) For(agent string, turns ...Turn) *Model {
	a := scripted.Agent{Agent: agent}
	for _, t := range turns {
		a.Steps = append(a.Steps, t.step)
	}
	if len(turns) > 0 {
		m.script.Agents = append(m.script.Agents, a)
	}
	return m
}

// ModelFunc makes a model of a function. When streaming, the words of its answer come as partial responses.
func ModelFunc(answer func(ctx context.Context, req *models.Request) (*models.Response, error)) *Model {
	return &Model{answer: answer}
}

// GenerateContent implements [models.Model].
func (m *Model) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	if m.answer != nil {
		return scripted.Func(m.answer).GenerateContent(ctx, req, stream)
	}
	inner, err := scripted.New(m.script)
	if err != nil {
		return func(yield func(*models.Response, error) bool) {
			yield(nil, &models.Error{Kind: models.KindInvalid, Provider: "tarrytest", Message: err.Error()})
		}
	}
	return inner.GenerateContent(ctx, req, stream)
}

// Requests lists what the model was asked, in order.
func (m *Model) Requests() []*models.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*models.Request(nil), m.requests...)
}

// Factory serves every name with m.
func (m *Model) Factory() models.Factory {
	return func(context.Context, string) (models.Model, error) { return m, nil }
}
