package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/web"
	"tarry/session"
)

// Answers takes what people say to tools that ask for data, and the results of long-running calls. Package auth/inputs has
// one. A mistake of the caller is an [*auth.AnswerError]; [auth.ErrClosed] is for what came too late.
type Answers interface {
	// Request returns a request that access allows, or [auth.ErrNoRequest].
	Request(ctx context.Context, access auth.Access, id string) (auth.Request, error)
	// Fit finds the answer to a tool's question in a response.
	Fit(r auth.Request, response any) (json.RawMessage, error)
	Reply(ctx context.Context, access auth.Access, id string, answer json.RawMessage) (auth.Request, error)
	// Decline ends a question, or the wait for a result, without one.
	Decline(ctx context.Context, access auth.Access, id string) (auth.Request, error)
	// Interim adds to what is known of a call, Complete ends it.
	Interim(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error)
	Complete(ctx context.Context, access auth.Access, id string, response map[string]any) (auth.Request, error)
}

// Answer is the body that answers a tool's question.
type Answer struct {
	// Response is the answer: what the question's schema describes, or a text with that as JSON.
	Response json.RawMessage `json:"response,omitempty"`
	// Decline says that there will be none.
	Decline bool `json:"decline,omitempty"`
}

// Result is the body that says what came of a long-running call.
type Result struct {
	// Response is a JSON object; anything else is wrapped as {"result": …}.
	Response json.RawMessage `json:"response,omitempty"`
	// Interim says that the result is not the last: the call goes on waiting.
	Interim bool `json:"interim,omitempty"`
	// Decline says that there will be no result.
	Decline bool `json:"decline,omitempty"`
}

// asked finds a request of the session, of a kind of [kindOf].
func (h *Handler) asked(r *http.Request, row session.Session, id, kind string) (auth.Request, auth.Access, error) {
	access := func(o agent.Owner) bool { return o == row.Owner }
	q, err := h.Answers.Request(r.Context(), access, id)
	switch {
	case errors.Is(err, auth.ErrNoRequest), err == nil && (q.WorkflowID != row.WorkflowID || kindOf(q) != kind):
		what := map[string]string{auth.TypeQuestion: "asks for no answer", auth.TypeResult: "waits for no result", auth.TypeConfirmation: "asks for no approval", kindKey: "asks for no key"}[kind]
		return q, nil, web.Refusal(http.StatusNotFound, "session %s %s under the id %q; its status names those that are open", row.ID, what, id)
	case err != nil:
		return q, nil, fmt.Errorf("find request: %w", err)
	}
	return q, access, nil
}

// answer answers a tool's question. The first answer counts.
func (h *Handler) answer(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	var in Answer
	if err := web.Decode(r, &in, maxBody); err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	if !in.Decline && len(in.Response) == 0 {
		return nil, web.Refusal(http.StatusBadRequest, "response is missing: say what the answer is, or decline")
	}
	id := r.PathValue("request")
	q, access, err := h.asked(r, row, id, auth.TypeQuestion)
	switch {
	case err != nil:
		return nil, err
	case !q.Status.Open():
		return nil, over(q)
	case in.Decline:
		q, err = h.Answers.Decline(r.Context(), access, id)
		return h.decided(q, err)
	}
	var response any
	if err := json.Unmarshal(in.Response, &response); err != nil {
		return nil, web.Refusal(http.StatusBadRequest, "response is not JSON")
	}
	value, err := h.Answers.Fit(q, map[string]any{"response": response})
	if err != nil {
		return h.decided(q, err)
	}
	q, err = h.Answers.Reply(r.Context(), access, id, value)
	return h.decided(q, err)
}

// result takes what came of a long-running call. The first final one counts.
func (h *Handler) result(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	var in Result
	if err := web.Decode(r, &in, maxBody); err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	id := r.PathValue("call")
	q, access, err := h.asked(r, row, id, auth.TypeResult)
	if err != nil {
		return nil, err
	}
	var response any
	switch {
	case !q.Status.Open():
		return nil, over(q)
	case in.Decline:
		q, err = h.Answers.Decline(r.Context(), access, id)
		return h.decided(q, err)
	case len(in.Response) == 0:
		return nil, web.Refusal(http.StatusBadRequest, "response is missing: say what came of the call")
	}
	if err := json.Unmarshal(in.Response, &response); err != nil {
		return nil, web.Refusal(http.StatusBadRequest, "response is not JSON")
	}
	object, ok := response.(map[string]any)
	if !ok {
		object = map[string]any{"result": response}
	}
	if in.Interim {
		q, err = h.Answers.Interim(r.Context(), access, id, object)
	} else {
		q, err = h.Answers.Complete(r.Context(), access, id, object)
	}
	return h.decided(q, err)
}

func over(q auth.Request) error {
	return web.Refusal(http.StatusConflict, "request %s is over: %s; nothing was changed", q.ID, q.Status)
}

func (h *Handler) decided(q auth.Request, err error) (any, error) {
	var wrong *auth.AnswerError
	switch {
	case errors.As(err, &wrong):
		return nil, web.Refusal(http.StatusUnprocessableEntity, "response: %s; the request stays as it is", wrong.Text)
	case errors.Is(err, auth.ErrClosed):
		return nil, over(q)
	case err != nil:
		return nil, fmt.Errorf("answer: %w", err)
	}
	h.Wake()
	return Decided{Request: q.ID, Status: q.Status}, nil
}

// describe adds to what is waited for what the tool asks, or what was called.
func describe(waiting []Waiting, e *session.Record) {
	for _, call := range e.Calls() {
		for i := range waiting {
			w := &waiting[i]
			switch {
			case w.Request != call.ID:
			case e.Kind == session.KindRequest && call.Name == agent.RequestInput:
				w.Message, _ = call.Args["message"].(string)
				w.Schema, w.Payload = encoded(call.Args["responseSchema"]), encoded(call.Args["payload"])
			case e.Speaks() && slices.Contains(e.LongRunningToolIDs, call.ID):
				w.Arguments = encoded(call.Args)
			}
		}
	}
}

func encoded(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil || v == nil {
		return nil
	}
	return body
}
