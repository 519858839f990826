package scripted

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/genai"

	"tarry/models"
)

// Provider is the registry prefix, and the Provider of errors.
const Provider = "scripted"

// maxMessage bounds an error's text in bytes: failed attempts stand in workflow history.
const maxMessage = 600

// Model answers from a script.
type Model struct {
	script Script
	cfg    options
}

type options struct {
	onCall  func(Record)
	journal string
}

// Option changes a [Model] made by [New].
type Option func(*options)

// OnCall has fn called at the start of each call whose answer was found, before any delay. fn may be called
// concurrently.
func OnCall(fn func(Record)) Option { return func(o *options) { o.onCall = fn } }

// Journal appends one JSON line for each such call to a file; see [Record].
func Journal(path string) Option { return func(o *options) { o.journal = path } }

// New makes a model of a script after checking it.
func New(script Script, opts ...Option) (*Model, error) {
	if err := script.validate(); err != nil {
		return nil, err
	}
	m := &Model{script: script}
	for _, opt := range opts {
		opt(&m.cfg)
	}
	return m, nil
}

// GenerateContent implements [models.Model].
func (m *Model) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		resp, pace, err := m.answer(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		emit(ctx, resp, stream, pace, yield)
	}
}

func (m *Model) answer(ctx context.Context, req *models.Request) (response *models.Response, pace time.Duration, err error) {
	v := newView(req)
	agent := m.script.find(v.agent)
	at := -1
	if agent != nil {
		at = agent.choose(v)
	}
	if at < 0 {
		return nil, 0, m.fault(v, m.whatThereIs(agent))
	}
	step := agent.Steps[at]
	record := Record{
		Time: time.Now().UTC(), Model: m.script.Name, Agent: v.agent, Turn: v.turn, Answer: agent.stepID(at), Invocation: req.Invocation,
	}
	if m.cfg.observed() {
		record.shape(req.Contents) // takes the longer the longer the conversation is
	}
	if err := m.cfg.note(record); err != nil {
		return nil, 0, err
	}
	if err := wait(ctx, step.Delay); err != nil {
		return nil, 0, err
	}
	if step.Error != nil {
		return nil, 0, step.Error.err()
	}
	resp, err := m.build(step, v)
	if err != nil {
		return nil, 0, m.fault(v, "step "+record.Answer+": "+err.Error())
	}
	return resp, step.Pace, nil
}

func (m *Model) build(step Step, v *view) (*models.Response, error) {
	fill := newFiller(v)
	content := &genai.Content{Role: genai.RoleModel}
	for _, part := range []struct {
		text    string
		thought bool
	}{{step.Thought, true}, {step.Text, false}} {
		filled, err := fill.text(part.text)
		if err != nil {
			return nil, err
		}
		if filled != "" {
			content.Parts = append(content.Parts, &genai.Part{Text: filled, Thought: part.thought})
		}
	}
	for _, c := range step.Calls {
		args, err := fill.args(c.Args)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", c.Name, err)
		}
		content.Parts = append(content.Parts, &genai.Part{
			FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: args},
		})
	}
	resp := &models.Response{
		Content: content, FinishReason: genai.FinishReasonStop, ModelVersion: m.version(), TurnComplete: true,
	}
	if u := step.Usage; u != nil {
		resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: u.Prompt, CandidatesTokenCount: u.Output, ThoughtsTokenCount: u.Thoughts,
			TotalTokenCount: u.Prompt + u.Output + u.Thoughts,
		}
	}
	return resp, nil
}

func (m *Model) version() string {
	if m.script.Name == "" {
		return Provider
	}
	return Provider + "/" + m.script.Name
}

// fault says what the script lacks. Its text comes from the script and the names in the request, never from contents.
func (m *Model) fault(v *view, what string) error {
	name := m.script.Name
	if name == "" {
		name = "script"
	}
	message := fmt.Sprintf("%s: no answer for agent %q at turn %d (new responses of: %s): %s",
		name, v.agent, v.turn, listed(v.newTools), what)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return &models.Error{Kind: models.KindInvalid, Provider: Provider, Message: message}
}

func (m *Model) whatThereIs(agent *Agent) string {
	if agent == nil {
		names := make([]string, len(m.script.Agents))
		for i, a := range m.script.Agents {
			names[i] = a.Agent
		}
		return "the script has the agents " + listed(names)
	}
	var plain int
	var rules []string
	for i, s := range agent.Steps {
		if s.When == nil {
			plain++
			continue
		}
		rules = append(rules, fmt.Sprintf("%s %+v", agent.stepID(i), *s.When))
	}
	return fmt.Sprintf("there are steps for %d turns; rules: %s", plain, listed(rules))
}

func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func (f *Failure) err() error {
	if f.Status == 0 {
		return &models.Error{
			Kind: models.KindNetwork, Provider: Provider, Message: "connection broke off", RetryAfter: f.RetryAfter,
		}
	}
	err := *models.StatusError(Provider, f.Status, nil, "", time.Time{})
	err.RetryAfter = f.RetryAfter
	return &err
}

func wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", Provider, err)
		}
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", Provider, ctx.Err())
	}
}
