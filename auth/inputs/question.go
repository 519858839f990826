package inputs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tarry/auth"
	"tarry/internal/form"
)

// Bounds of what comes back, in bytes of JSON.
const (
	// MaxAnswer is that of an answer to a tool's question.
	MaxAnswer = 64 << 10
	// MaxResult is that of the result of a long-running call.
	MaxResult = 1 << 20
)

// Errors of requests of the wrong type.
var (
	// ErrNotQuestion: the request is no question of a tool.
	ErrNotQuestion = errors.New("inputs: the request is no question of a tool")
	// ErrNotResult: the request waits for no result of a call.
	ErrNotResult = errors.New("inputs: the request waits for no result")
)

// Request returns a request that access allows, or [auth.ErrNoRequest].
func (s *Service) Request(ctx context.Context, access auth.Access, id string) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("find request: %w", err)
	}
	return r, nil
}

// CheckPrompt says whether answers to a tool's question can be checked.
func (s *Service) CheckPrompt(p auth.Prompt) error {
	if len(p.Schema) == 0 {
		return nil
	}
	if _, err := form.Compile(p.Schema); err != nil {
		return fmt.Errorf("check schema: %w", err)
	}
	return nil
}

// SealPrompt returns what a tool asks in a form that the row of r may hold.
func (s *Service) SealPrompt(r auth.Request, p auth.Prompt) ([]byte, error) {
	return s.seal(r, columnInput, p)
}

// Prompt opens what a tool asks.
func (s *Service) Prompt(r auth.Request) (p auth.Prompt, err error) {
	if r.Need.Type != auth.TypeQuestion {
		return p, ErrNotQuestion
	}
	return p, s.open(r, columnInput, r.Need.Input, &p)
}

// Said opens what was answered to a tool's question, or came of a long-running call: JSON.
func (s *Service) Said(r auth.Request) (said json.RawMessage, err error) {
	switch {
	case r.Need.Type != auth.TypeQuestion && r.Need.Type != auth.TypeResult:
		return nil, ErrNotQuestion
	case r.Status != auth.StatusGranted:
		return nil, ErrClosed
	}
	return said, s.open(r, columnAnswer, r.Need.Answer, &said)
}

// Fit finds the answer to a tool's question in the response that a client of ADK sends: bare, or wrapped as {"response": …},
// {"payload": …} or {"result": …}, which is how the web UI sends text. Text counts as JSON where only that fits. A question
// without a schema takes what is there. Errors: an [*auth.AnswerError], [ErrNotQuestion].
func (s *Service) Fit(r auth.Request, response any) (json.RawMessage, error) {
	p, err := s.Prompt(r)
	if err != nil {
		return nil, err
	}
	readings := readings(p, response)
	var wrong error
	for _, value := range readings {
		raw, err := fits(p, value)
		if err == nil {
			return raw, nil
		}
		if wrong == nil {
			wrong = err
		}
	}
	return nil, wrong
}

// readings lists what a response may mean, the likeliest first.
func readings(p auth.Prompt, response any) []any {
	object, _ := response.(map[string]any)
	inner, wrapped := any(nil), false
	for _, key := range []string{"response", "payload", "result"} {
		if v, ok := object[key]; ok && len(object) == 1 && !mentions(p.Schema, key) {
			inner, wrapped = v, true
		}
	}
	if !wrapped {
		return append([]any{response}, parsed(p, response)...)
	}
	out := append([]any{inner}, parsed(p, inner)...)
	if len(p.Schema) > 0 {
		out = append(out, response)
	}
	return out
}

// parsed is what a text says as JSON.
func parsed(p auth.Prompt, v any) []any {
	text, ok := v.(string)
	if !ok || len(p.Schema) == 0 || len(text) > MaxAnswer {
		return nil
	}
	var out any
	if json.Unmarshal([]byte(strings.TrimSpace(text)), &out) != nil {
		return nil
	}
	return []any{out}
}

// mentions says whether a schema has a property of its own by the name of a wrapper.
func mentions(schema json.RawMessage, key string) bool {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(schema, &object) == nil && object.Properties[key] != nil
}

func fits(p auth.Prompt, value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	switch {
	case err != nil:
		return nil, &auth.AnswerError{Text: "the answer is not JSON"}
	case len(raw) > MaxAnswer:
		return nil, &auth.AnswerError{Text: fmt.Sprintf("the answer is longer than %d bytes", MaxAnswer)}
	case len(p.Schema) == 0 && value == nil:
		return nil, &auth.AnswerError{Text: `there is no answer; send {"response": …}`}
	case len(p.Schema) == 0:
		return raw, nil
	}
	schema, err := form.Compile(p.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of question: %w", err)
	}
	if err := schema.Check(value); err != nil {
		return nil, &auth.AnswerError{Text: "the answer does not fit what was asked for: " + err.Error()}
	}
	return raw, nil
}

// Reply ends a tool's question with its answer, which is checked. Only the first answer counts; whatever comes after it is
// [ErrClosed] and changes nothing. Errors besides: what the store says about requests that access does not allow, those of
// [Service.Fit].
func (s *Service) Reply(ctx context.Context, access auth.Access, id string, answer json.RawMessage) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("answer question: %w", err)
	}
	p, err := s.Prompt(r)
	if err != nil {
		return r, err
	}
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return r, &auth.AnswerError{Text: "the answer is not JSON"}
	}
	if _, err := fits(p, value); err != nil {
		return r, err
	}
	return s.end(ctx, access, r, answer, auth.StatusGranted)
}

// Complete ends a long-running call with its final result. Only the first counts, as for [Service.Reply].
func (s *Service) Complete(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("complete call: %w", err)
	}
	if r.Need.Type != auth.TypeResult {
		return r, ErrNotResult
	}
	if err := s.CheckResult(response); err != nil {
		return r, err
	}
	return s.end(ctx, access, r, response, auth.StatusGranted)
}

// Interim adds an interim result to a long-running call, which waits on. Errors: as for [Service.Complete].
func (s *Service) Interim(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("interim result: %w", err)
	}
	if r.Need.Type != auth.TypeResult {
		return r, ErrNotResult
	}
	if err := s.CheckResult(response); err != nil {
		return r, err
	}
	if r.Status, err = s.Store.Interim(ctx, id, access, response); err != nil {
		return r, fmt.Errorf("interim result: %w", err)
	}
	if r.Status != auth.StatusPending {
		return r, ErrClosed
	}
	s.Log.InfoContext(ctx, "an interim result came", "request_id", r.ID, "session_id", r.Session)
	return r, nil
}

// CheckResult says whether a result is of a size that is kept; the error is an [*auth.AnswerError].
func (*Service) CheckResult(response map[string]any) error {
	raw, err := json.Marshal(response)
	switch {
	case err != nil:
		return &auth.AnswerError{Text: "the result is not JSON"}
	case len(raw) > MaxResult:
		return &auth.AnswerError{Text: fmt.Sprintf("the result is longer than %d bytes", MaxResult)}
	}
	return nil
}

// Decline ends a tool's question, or the wait for a call's result, without one.
func (s *Service) Decline(ctx context.Context, access auth.Access, id string) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("decline: %w", err)
	}
	if r.Need.Type != auth.TypeQuestion && r.Need.Type != auth.TypeResult {
		return r, ErrNotQuestion
	}
	return s.end(ctx, access, r, nil, auth.StatusDenied)
}
