package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/auth"
)

// Answers takes what clients say to tools that ask for data, and the results of long-running calls. Package auth/inputs has
// one. A mistake of the client is an [*auth.AnswerError]; [auth.ErrClosed] is for what came too late.
type Answers interface {
	// Fit finds the answer to a tool's question in a response.
	Fit(r auth.Request, response any) (json.RawMessage, error)
	Reply(ctx context.Context, access auth.Access, id string, answer json.RawMessage) (auth.Request, error)
	// CheckResult says whether a result is of a size that is kept.
	CheckResult(response map[string]any) error
	// Interim adds to what is known of a call, Complete ends it.
	Interim(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error)
	Complete(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error)
}

// answer is what a client says to one question, or of one call.
type answer struct {
	request string
	value   json.RawMessage // to a question
	result  map[string]any  // of a call
	interim bool
}

// answers are those of one message.
type answers []answer

// add reads a reply. What comes after an answer changes nothing, whatever it says.
func (d *answers) add(h *Handler, r auth.Request, said reply) error {
	if slices.ContainsFunc(*d, func(o answer) bool { return o.request == said.id && !o.interim }) {
		return invalid("%s is answered twice in this message; the request stays as it is", said.id)
	}
	if !r.Status.Open() {
		return nil
	}
	out := answer{request: said.id, interim: said.willContinue}
	if r.Need.Type == auth.TypeResult {
		out.result = resultOf(said.response)
		if err := h.Answers.CheckResult(out.result); err != nil {
			return h.unfit(said.id, err)
		}
		*d = append(*d, out)
		return nil
	}
	if said.willContinue {
		return invalid("%s: willContinue is for results of long-running tools; send the whole answer; the request stays as it is", said.id)
	}
	var err error
	if out.value, err = h.Answers.Fit(r, said.response); err != nil {
		return h.unfit(said.id, err)
	}
	*d = append(*d, out)
	return nil
}

// resultOf makes an object of a response, as function responses are.
func resultOf(response any) map[string]any {
	switch v := response.(type) {
	case nil:
		return map[string]any{}
	case map[string]any:
		return v
	}
	return map[string]any{"result": response}
}

func (h *Handler) unfit(id string, err error) error {
	var wrong *auth.AnswerError
	if errors.As(err, &wrong) {
		return invalid("%s: %s; the request stays as it is", id, wrong.Text)
	}
	return fmt.Errorf("answer: %w", err)
}

// answer lets the answers count, as confirm does decisions.
func (h *Handler) answer(ctx context.Context, owner agent.Owner, all answers) error {
	access := func(o agent.Owner) bool { return o == owner }
	for _, d := range all {
		var err error
		switch {
		case d.value != nil:
			_, err = h.Answers.Reply(ctx, access, d.request, d.value)
		case d.interim:
			_, err = h.Answers.Interim(ctx, access, d.request, d.result)
		default:
			_, err = h.Answers.Complete(ctx, access, d.request, d.result)
		}
		if err != nil && !errors.Is(err, auth.ErrClosed) {
			return h.unfit(d.request, err)
		}
	}
	if len(all) > 0 {
		h.Wake()
	}
	return nil
}
