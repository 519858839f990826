package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/internal/form"
	"tarry/server/connect"
)

// questionPage describes a question of a tool, or a call that waits for its result.
func (l logins) questionPage(r auth.Request) (connect.Page, error) {
	p := callPage(r)
	p.Input, p.Question = true, &connect.Question{Result: r.Need.Type == auth.TypeResult}
	if !r.Status.Open() || p.Question.Result {
		return p, nil
	}
	asked, err := l.inputs.Prompt(r)
	if err != nil {
		return p, fmt.Errorf("open question: %w", err)
	}
	p.Question.Message, p.Question.Payload = asked.Message, string(asked.Payload)
	fields, _, ok := fieldsOf(asked.Schema)
	if !ok {
		p.Question.Schema = string(asked.Schema)
	}
	for i, f := range fields {
		f.Name = connect.ControlName(0, i)
		p.Question.Fields = append(p.Question.Fields, f)
	}
	return p, nil
}

// bare is the name of the only field of a form for an answer that is no object.
const bare = "answer"

// fieldsOf makes a form of an answer's schema. shape is the schema of the form, which has the answer in its field bare if the
// answer itself is no object; ok is false where no form can be made.
func fieldsOf(schema json.RawMessage) (fields []form.Field, shape json.RawMessage, ok bool) {
	if len(schema) == 0 {
		return nil, nil, false
	}
	if fields, err := form.Fields(schema); err == nil && len(fields) > 0 {
		return fields, schema, true
	}
	shape, err := json.Marshal(map[string]any{"type": "object", "required": []string{bare}, "properties": map[string]any{bare: textual(schema)}})
	if err != nil {
		return nil, nil, false
	}
	fields, err = form.Fields(shape)
	return fields, shape, err == nil
}

// textual says that choices among texts are texts, as forms want to know.
func textual(schema json.RawMessage) any {
	var choices struct {
		Type json.RawMessage `json:"type"`
		Enum []string        `json:"enum"`
	}
	var whole map[string]any
	if json.Unmarshal(schema, &choices) != nil || choices.Type != nil || len(choices.Enum) == 0 || json.Unmarshal(schema, &whole) != nil {
		return schema
	}
	whole["type"] = "string"
	return whole
}

// reply takes what a person filled in.
func (l logins) reply(ctx context.Context, access auth.Access, r auth.Request, a connect.Answer) (auth.Request, error) {
	var err error
	switch {
	case a.Decline:
		r, err = l.inputs.Decline(ctx, access, r.ID)
	case r.Need.Type == auth.TypeResult:
		r, err = l.inputs.Complete(ctx, access, r.ID, resultOf(text(a)))
	default:
		var value json.RawMessage
		if value, err = l.filled(r, a); err == nil {
			r, err = l.inputs.Reply(ctx, access, r.ID, value)
		}
	}
	var wrong *auth.AnswerError
	if errors.As(err, &wrong) {
		return r, &connect.FormError{Text: "That does not do: " + wrong.Text + ".", Control: connect.AnswerControl}
	}
	return r, err //nolint:wrapcheck // the caller turns it into one of the pages'
}

// filled reads the answer off the form.
func (l logins) filled(r auth.Request, a connect.Answer) (json.RawMessage, error) {
	asked, err := l.inputs.Prompt(r)
	if err != nil {
		return nil, fmt.Errorf("open question: %w", err)
	}
	fields, shape, ok := fieldsOf(asked.Schema)
	if !ok {
		return l.inputs.Fit(r, map[string]any{"response": text(a)}) //nolint:wrapcheck // the caller reads it
	}
	content, err := filledIn(shape, fields, 0, a)
	if err != nil {
		return nil, fmt.Errorf("read form: %w", err)
	}
	var value any = content
	if string(shape) != string(asked.Schema) {
		value = content[bare]
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode form: %w", err)
	}
	return body, nil
}

func text(a connect.Answer) string {
	if values := a.Values(connect.AnswerControl); len(values) == 1 {
		return values[0]
	}
	return ""
}

// resultOf reads a result that was typed in: a JSON object, or any words.
func resultOf(text string) map[string]any {
	var object map[string]any
	if len(text) <= inputs.MaxResult && json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return object
	}
	return map[string]any{"result": text}
}
