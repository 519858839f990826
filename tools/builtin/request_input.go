package builtin

import (
	"context"
	"encoding/json"

	"tarry/agent"
	"tarry/tools"
)

// RequestInput returns the tool by which a model asks the person for something, as ADK's request_input: the run waits until
// there is an answer.
func RequestInput() tools.Tool { return requestInput{} }

type requestInput struct{}

// Declaration implements [tools.Tool].
func (requestInput) Declaration() tools.Declaration {
	return tools.Declaration{
		Name:        agent.RequestInputTool,
		Description: "Asks the user for information that you need to go on, and waits for the answer.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"message":{"type":"string","description":"What to ask the user."},` +
			`"response_schema":{"type":"object","description":"The JSON Schema of the answer, without references. Leave it out for any answer."}},` +
			`"required":["message"]}`),
		Idempotent: true,
	}
}

// Call implements [tools.Tool].
func (requestInput) Call(_ context.Context, call tools.Call) (tools.Result, error) {
	if len(call.Answer) > 0 {
		return tools.Result{Response: map[string]any{"response": call.Answer}}, nil
	}
	var in struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"response_schema"`
	}
	if err := json.Unmarshal(call.Args, &in); err != nil || in.Message == "" {
		return tools.Result{}, tools.Errorf("message is missing: say in a text what to ask the user")
	}
	if string(in.Schema) == "null" {
		in.Schema = nil
	}
	return tools.Result{}, &tools.AnswerRequiredError{Message: in.Message, Schema: in.Schema}
}
