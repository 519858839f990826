package inputs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"tarry/auth"
	"tarry/auth/vault"
	"tarry/internal/form"
)

// Errors of [Service.Open] and [Service.Answer], for the page.
var (
	// ErrClosed: nobody waits for the answer any more.
	ErrClosed = auth.ErrClosed
	// ErrNotInput: the request is a login, or asks for an approval.
	ErrNotInput = errors.New("inputs: the request is no question")
	// ErrNotConfirmation: the request is a login, or a server's question.
	ErrNotConfirmation = errors.New("inputs: the request asks for no approval")
)

// Vault encrypts what the store keeps. [vault.Vault] is one.
type Vault interface {
	Seal(plain auth.Secret, ad vault.AD) ([]byte, error)
	Open(cipher []byte, ad vault.AD) (auth.Secret, error)
}

// Store keeps requests.
type Store interface {
	// Request returns a request that access allows.
	Request(ctx context.Context, id string, access auth.Access) (auth.Request, error)
	// AnswerInput ends a pending request with the given status, keeps the sealed answer and writes the message that wakes its
	// run. Of a request that ended before, or whose deadline is over, it returns the status, [ErrClosed], and stores nothing.
	AnswerInput(ctx context.Context, id string, access auth.Access, answer []byte, status auth.Status) (auth.Status, error)
	// Interim adds an interim result to a long-running call that waits; only where the status that it returns is pending
	// something was stored.
	Interim(ctx context.Context, id string, access auth.Access, response map[string]any) (auth.Status, error)
}

// Service seals questions and takes answers. Safe for concurrent use.
type Service struct {
	Store Store
	Vault Vault
	// Wake is called after a message to a run was stored; nil means that somebody polls.
	Wake func()
	Log  *slog.Logger
}

const (
	columnInput  = "input"
	columnAnswer = "input_answer"
)

func ad(r auth.Request, column string) vault.AD {
	return vault.AD{App: r.Owner.App, User: r.Owner.User, Row: "request/" + r.ID, Resource: r.Need.Slot.Resource, Client: r.Need.Slot.Client, Column: column}
}

// Sealed is what binds what r asks, and what was answered, to r: what [auth.Need] has in Input and Answer.
func Sealed(r auth.Request) (input, answer vault.AD) { return ad(r, columnInput), ad(r, columnAnswer) }

// Check says whether a question can be put to a person: every form of it can be shown. Errors wrap [form.ErrSchema].
func (s *Service) Check(q auth.Question) error {
	for _, in := range q.Inputs {
		if in.Mode != auth.InputForm {
			continue
		}
		if _, err := form.Fields(in.Schema); err != nil {
			return fmt.Errorf("check question: %w", err)
		}
	}
	return nil
}

// Seal returns the question in a form that the row of r may hold.
func (s *Service) Seal(r auth.Request, q auth.Question) ([]byte, error) {
	return s.seal(r, columnInput, q)
}

// Question opens what r asks.
func (s *Service) Question(r auth.Request) (q auth.Question, err error) {
	if r.Need.Type != auth.TypeInput {
		return q, ErrNotInput
	}
	return q, s.open(r, columnInput, r.Need.Input, &q)
}

// Answers returns the question of a request and every answer to it: the person's, and those that needed nobody.
func (s *Service) Answers(r auth.Request) (auth.Question, map[string]auth.InputAnswer, error) {
	q, err := s.Question(r)
	if err != nil || q.Plain {
		return q, nil, err
	}
	out := map[string]auth.InputAnswer{}
	if err := s.open(r, columnAnswer, r.Need.Answer, &out); err != nil {
		return q, nil, err
	}
	for key, answer := range q.Answers {
		out[key] = answer
	}
	return q, out, nil
}

// Answer ends a request with what its person did. Errors: what the store says about requests that access does not allow,
// [ErrClosed], [ErrNotInput].
func (s *Service) Answer(ctx context.Context, access auth.Access, id string, answers map[string]auth.InputAnswer) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("answer: %w", err)
	}
	q, err := s.Question(r)
	if err != nil {
		return r, err
	}
	status := auth.StatusGranted
	for _, in := range q.Inputs {
		a, ok := answers[in.Key]
		if !ok {
			a.Action = auth.InputCancel
			answers[in.Key] = a
		}
		if q.Plain && a.Action != auth.InputAccept {
			status = auth.StatusDenied
		}
	}
	return s.end(ctx, access, r, answers, status)
}

// end keeps what was said and ends the request with status.
func (s *Service) end(ctx context.Context, access auth.Access, r auth.Request, said any, status auth.Status) (auth.Request, error) {
	sealed, err := s.seal(r, columnAnswer, said)
	if err != nil {
		return r, err
	}
	r.Status, err = s.Store.AnswerInput(ctx, r.ID, access, sealed, status)
	switch {
	case errors.Is(err, ErrClosed) && r.Status == auth.StatusPending: // the deadline is over, and the run has not closed it yet
		r.Status = auth.StatusExpired
		return r, ErrClosed
	case errors.Is(err, ErrClosed):
		return r, ErrClosed
	case err != nil:
		return r, fmt.Errorf("answer: %w", err)
	}
	if s.Wake != nil {
		s.Wake()
	}
	s.Log.InfoContext(ctx, "a person answered", "request_id", r.ID, "type", r.Need.Type, "session_id", r.Session, "outcome", string(status))
	return r, nil
}

func (s *Service) seal(r auth.Request, column string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", column, err)
	}
	out, err := s.Vault.Seal(auth.NewSecret(string(raw)), ad(r, column))
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", column, err)
	}
	return out, nil
}

func (s *Service) open(r auth.Request, column string, cipher []byte, out any) error {
	plain, err := s.Vault.Open(cipher, ad(r, column))
	if err != nil {
		return fmt.Errorf("open %s: %w", column, err)
	}
	if err := json.Unmarshal([]byte(plain.Reveal()), out); err != nil {
		return fmt.Errorf("decode %s: %w", column, vault.ErrCipher)
	}
	return nil
}
