package tarrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/auth"
	"tarry/internal/form"
)

// Answers go the way that the server's go: they are checked, kept encrypted, and told to the run by the outbox.

func (r *Run) access(o agent.Owner) bool { return o == r.row.Owner }

// each answers the waits that names choose, and lets the run go on.
func (r *Run) each(what string, names []string, kinds []Kind, answer func(context.Context, Wait) error) {
	r.t.Helper()
	for _, w := range r.choose(what, names, kinds...) {
		err := answer(context.Background(), w)
		var wrong *auth.AnswerError
		switch {
		case errors.As(err, &wrong) && len(w.Schema) > 0:
			r.t.Fatalf("tarrytest: %s: %s: %s; give one that fits %s", what, w, wrong.Text, w.Schema)
		case errors.As(err, &wrong):
			r.t.Fatalf("tarrytest: %s: %s: %s", what, w, wrong.Text)
		case err != nil:
			r.t.Fatalf("tarrytest: %s: %s: %v", what, w, err)
		}
	}
	r.goOn()
}

// Approve approves the calls that wait for it and are named, by request or by tool; without names, the one call that waits.
// The run goes on. Fails the test if a name is not that of one waiting call: of several calls of a tool, each is named by its
// request.
func (r *Run) Approve(names ...string) {
	r.t.Helper()
	r.confirm("approve", names, true, auth.Consent{})
}

// ApproveWith approves one call, chosen as for [Run.Approve], and sends the tool the payload that it has offered to be filled in.
// Fails the test, besides, if the payload is not JSON.
func (r *Run) ApproveWith(payload any, name ...string) {
	r.t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		r.t.Fatalf("tarrytest: approve: the payload is not JSON: %v", err)
	}
	r.confirm("approve", name, true, auth.Consent{Payload: string(raw)})
}

// Reject rejects calls that wait for approval, chosen as for [Run.Approve]; the model is told. The run goes on.
func (r *Run) Reject(names ...string) {
	r.t.Helper()
	r.confirm("reject", names, false, auth.Consent{})
}

func (r *Run) confirm(what string, names []string, confirmed bool, said auth.Consent) {
	r.t.Helper()
	r.each(what, names, []Kind{KindConfirmation}, func(ctx context.Context, w Wait) error {
		_, err := r.inputs.Confirm(ctx, r.access, w.Request, confirmed, said)
		return err //nolint:wrapcheck // each does
	})
}

// Reply answers the question of a tool, and lets the run go on. Where several are asked, names choose, by request or by tool.
// Fails the test, and leaves the question open, if the answer does not fit the question's schema, as the server would refuse it;
// and if a name is not that of one question.
func (r *Run) Reply(answer any, names ...string) {
	r.t.Helper()
	var value any
	raw, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(raw, &value)
	}
	if err != nil {
		r.t.Fatalf("tarrytest: reply: the answer is not JSON: %v", err)
	}
	r.each("reply", names, []Kind{KindQuestion}, func(ctx context.Context, w Wait) error {
		q, err := r.inputs.Request(ctx, r.access, w.Request)
		if err != nil {
			return err //nolint:wrapcheck // each does
		}
		fit, err := r.inputs.Fit(q, map[string]any{"response": value})
		if err == nil {
			_, err = r.inputs.Reply(ctx, r.access, w.Request, fit)
		}
		return err //nolint:wrapcheck // each does
	})
}

// Complete gives the final result of a long-running call, and lets the run go on. Where several are waited for, names choose, by
// request (which is the call's id) or by tool. Fails the test if a name is not that of one such call, or the result is no JSON
// or too long to be kept.
func (r *Run) Complete(result map[string]any, names ...string) {
	r.t.Helper()
	r.each("complete", names, []Kind{KindResult}, func(ctx context.Context, w Wait) error {
		_, err := r.inputs.Complete(ctx, r.access, w.Request, result)
		return err //nolint:wrapcheck // each does
	})
}

// Interim adds an interim result to a long-running call, chosen as for [Run.Complete]: it is among the [Run.Events], and the run
// waits on. Fails the test as Complete does.
func (r *Run) Interim(result map[string]any, names ...string) {
	r.t.Helper()
	for _, w := range r.choose("interim", names, KindResult) {
		if _, err := r.inputs.Interim(context.Background(), r.access, w.Request, result); err != nil {
			r.t.Fatalf("tarrytest: interim: %s: %v", w, err)
		}
	}
}

// Fill does what the server of a tool wants of a person (MCP's elicitation), and lets the run go on: it visits the URLs, and fills
// in the forms with the fields of these names; names choose as for [Run.Reply]. Fails the test if a field is missing, unknown, or
// has a value that the form does not take, as the server's page would refuse it; and if a name is not that of one such wait.
func (r *Run) Fill(fields map[string]any, names ...string) {
	r.t.Helper()
	r.each("fill", names, []Kind{KindInput}, func(ctx context.Context, w Wait) error { return r.fillIn(ctx, w, fields, true) })
}

// fillIn answers what a server wants, by doing or by declining it.
func (r *Run) fillIn(ctx context.Context, w Wait, fields map[string]any, accept bool) error {
	q, err := r.inputs.Request(ctx, r.access, w.Request)
	if err != nil {
		return err //nolint:wrapcheck // each does
	}
	asked, err := r.inputs.Question(q)
	if err != nil {
		return err //nolint:wrapcheck // each does
	}
	answers, known := map[string]auth.InputAnswer{}, []string{}
	for _, in := range asked.Inputs {
		answer := auth.InputAnswer{Action: auth.InputAccept}
		if !accept {
			answer.Action = auth.InputDecline
		} else if in.Mode == auth.InputForm {
			if answer.Content, err = fill(in.Schema, fields, &known); err != nil {
				return err
			}
		}
		answers[in.Key] = answer
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no field %q; the form has %v", name, known)
		}
	}
	_, err = r.inputs.Answer(ctx, r.access, w.Request, answers)
	return err //nolint:wrapcheck // each does
}

// fill fills in a form as a browser sends it.
func fill(schema json.RawMessage, fields map[string]any, known *[]string) (map[string]any, error) {
	return form.Read(schema, func(name string) (out []string) { //nolint:wrapcheck // each does
		*known = append(*known, name)
		switch v := fields[name].(type) {
		case nil:
		case bool:
			if v {
				out = []string{"true"}
			}
		case []string:
			out = v
		default:
			out = []string{fmt.Sprint(v)}
		}
		return out
	})
}

// Decline ends a question, the wait for a result, or what a server wants, without an answer, and lets the run go on: the model is
// told. names choose, by request or by tool; without them, it is what alone is waited for. Fails the test if a name is not that of one
// such wait. Logins are denied, calls rejected: see [Run.Deny] and [Run.Reject].
func (r *Run) Decline(names ...string) {
	r.t.Helper()
	r.each("decline", names, []Kind{KindQuestion, KindResult, KindInput}, func(ctx context.Context, w Wait) error {
		if w.Kind == KindInput {
			return r.fillIn(ctx, w, nil, false)
		}
		_, err := r.inputs.Decline(ctx, r.access, w.Request)
		return err //nolint:wrapcheck // each does
	})
}
