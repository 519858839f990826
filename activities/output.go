package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
)

// setModelResponse is ADK's tool by which a model that has other tools gives an answer in the form of output_schema. No
// tool activity runs for it: its arguments become the agent's final text.
const setModelResponse = "set_model_response"

// codeOutput marks an answer that does not fit output_schema.
const codeOutput = "OUTPUT_SCHEMA"

// Bounds on a model that does not find the form: so often it is asked again for a text that does not fit, and so often it
// may call set_model_response in vain before the agent's turn ends.
const (
	outputTries = 3
	maxRejected = 5
)

// output is the form that an agent's final answer must have.
type output struct {
	schema   *tools.Schema
	asTool   bool // given by set_model_response; otherwise by the provider's own means
	rejected int  // calls in vain so far
}

func outputOf(node *agent.Agent, view []*session.Record) (*output, error) {
	if len(node.OutputSchema) == 0 {
		return nil, nil //nolint:nilnil // any form will do
	}
	schema, err := tools.CompileSchema(node.OutputSchema)
	if err != nil {
		return nil, &turnError{fmt.Sprintf("agent %s: output_schema: %v", node.Name, err)}
	}
	return &output{schema: schema, rejected: rejected(view, node.Name)}, nil
}

// rejected counts the calls in vain since the agent last came to an end, in the invocation at hand.
func rejected(view []*session.Record, name string) (n int) {
	for _, r := range slices.Backward(view) {
		switch {
		case r.Author != name || r.InvocationID != view[len(view)-1].InvocationID:
		case r.Kind == session.KindModel && len(r.Calls()) == 0:
			return n
		case slices.ContainsFunc(r.Responses(), func(f *genai.FunctionResponse) bool { return f.Name == setModelResponse }):
			n++
		}
	}
	return n
}

// require puts the form into the request; the result is for the system instruction.
func (o *output) require(t *turn) (note string) {
	config := t.request.Config
	if len(t.tools) == 0 {
		config.ResponseMIMEType, config.ResponseJsonSchema = "application/json", o.schema.Raw()
		return ""
	}
	o.asTool = true
	if len(config.Tools) == 0 {
		config.Tools = []*genai.Tool{{}}
	}
	t.tools[setModelResponse] = offered{name: setModelResponse}
	last := config.Tools[len(config.Tools)-1]
	last.FunctionDeclarations = append(last.FunctionDeclarations, &genai.FunctionDeclaration{
		Name: setModelResponse, Description: "Gives your final answer in the form that it must have. Call it instead of answering in words.",
		ParametersJsonSchema: o.parameters(),
	})
	return "When you need no other tool any more, give your final answer by calling " + setModelResponse + ", by itself."
}

// parameters wraps a schema that describes something else than objects: arguments always are one.
func (o *output) parameters() any {
	if o.schema.Object() {
		return o.schema.Raw()
	}
	wrapped := map[string]any{"type": "object", "properties": map[string]any{"result": o.schema.Raw()}, "required": []string{"result"}}
	var definitions map[string]json.RawMessage
	if err := json.Unmarshal(o.schema.Raw(), &definitions); err == nil && definitions["$defs"] != nil {
		wrapped["$defs"] = definitions["$defs"] // references name it from the top
	}
	return wrapped
}

// ofArgs is the answer that a call of set_model_response gives.
func (o *output) ofArgs(args map[string]any) (any, error) {
	var value any = args
	if !o.schema.Object() {
		value = args["result"]
	}
	return value, o.schema.Check(value) //nolint:wrapcheck // a complaint for the model
}

// ofText is the answer that a text gives; some models wrap JSON into a Markdown fence.
func (o *output) ofText(text string) (any, error) {
	text = strings.TrimSpace(text)
	if inner, fenced := strings.CutPrefix(text, "```"); fenced {
		text = strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```")
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, errors.New("it is not JSON")
	}
	return value, o.schema.Check(value) //nolint:wrapcheck // a complaint for the model
}

// complaint says why a response without calls does not fit; nil also for one that is no answer or was cut off.
func (o *output) complaint(r *models.Response) error {
	e := session.Event{Content: r.Content}
	if r.ErrorCode != "" || r.FinishReason == genai.FinishReasonMaxTokens || len(e.Calls()) > 0 {
		return nil
	}
	_, err := o.ofText(e.Text())
	return err
}

// again is the request that asks for the same answer in the right form.
func (o *output) again(r *models.Request, given *models.Response, complaint error) *models.Request {
	next, config := *r, *r.Config
	say := "Your answer does not have the form that it must have: " + complaint.Error() + ". Give it again, as JSON and nothing else."
	if o.asTool {
		say = "Your answer does not have the form that it must have. Give it by calling " + setModelResponse + "."
		config.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{setModelResponse},
		}}
	}
	next.Config, next.Contents = &config, slices.Clone(r.Contents)
	if c := own(given.Content); c != nil && len(c.Parts) > 0 {
		next.Contents = append(next.Contents, c)
	}
	next.Contents = append(next.Contents, genai.NewContentFromText(say, genai.RoleUser))
	return &next
}

// generateSorted makes one model call, and sorts the answer of one that was told to plan.
func (a *Activities) generateSorted(ctx context.Context, m models.Model, turn turn, r *models.Request) (*models.Response, error) {
	response, err := a.generate(ctx, m, r, turn.pieces)
	if err != nil || !turn.planned {
		return response, err
	}
	return sorted(response), nil
}

// formed makes a model call, and asks again where the answer has not the form that it must have.
func (a *Activities) formed(ctx context.Context, m models.Model, turn turn) (*models.Response, error) {
	response, err := a.generateSorted(ctx, m, turn, turn.request)
	for n := 1; err == nil && turn.output != nil && n < outputTries; n++ {
		complaint := turn.output.complaint(response)
		if complaint == nil {
			break
		}
		spent := response.UsageMetadata
		if response, err = a.generateSorted(ctx, m, turn, turn.output.again(turn.request, response, complaint)); err == nil {
			more := *response // a model may give the same answer to others too
			more.UsageMetadata = total(spent, response.UsageMetadata)
			response = &more
		}
	}
	return response, err
}

// total adds what was spent, so that budgets see all of it.
func total(a, b *genai.GenerateContentResponseUsageMetadata) *genai.GenerateContentResponseUsageMetadata {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	sum := *b
	sum.PromptTokenCount += a.PromptTokenCount
	sum.CandidatesTokenCount += a.CandidatesTokenCount
	sum.ThoughtsTokenCount += a.ThoughtsTokenCount
	sum.CachedContentTokenCount += a.CachedContentTokenCount
	sum.ToolUsePromptTokenCount += a.ToolUsePromptTokenCount
	sum.TotalTokenCount += a.TotalTokenCount
	return &sum
}

// settle turns a final answer into the event's text. It returns the answer's value; what does not fit stays, as an error.
func (o *output) settle(e *session.Event) (value any, ok bool) {
	var err error
	calls := e.Calls()
	switch {
	case e.ErrorCode != "" && e.Text() == "" && len(calls) == 0: // a blocked prompt
		return nil, false
	case len(calls) == 0:
		value, err = o.ofText(e.Text())
		if err == nil && !json.Valid([]byte(e.Text())) {
			say(e, value) // without the fence
		}
	case len(calls) == 1 && calls[0].Name == setModelResponse && o.asTool:
		value, err = o.ofArgs(calls[0].Args)
		if err != nil && o.rejected+1 < maxRejected {
			return nil, false // answered like any call that cannot run
		}
		say(e, value)
	default:
		return nil, false
	}
	if err != nil {
		e.ErrorCode, e.ErrorMessage = codeOutput, "The answer does not have the form that output_schema describes: "+err.Error()
		return nil, false
	}
	return value, true
}

// say makes value the event's words.
func say(e *session.Event, value any) {
	e.Content.Parts = slices.DeleteFunc(e.Content.Parts, func(p *genai.Part) bool { return !p.Thought })
	e.Content.Parts = append(e.Content.Parts, &genai.Part{Text: string(encode(value))})
}

// refuse answers a call of set_model_response that does not give an answer.
func (o *output) refuse(call *genai.FunctionCall, alone bool) map[string]any {
	if !alone {
		return map[string]any{"error": "Call " + setModelResponse + " by itself, once the other tools have answered."}
	}
	_, err := o.ofArgs(call.Args)
	if err == nil {
		err = errors.New("unknown reason")
	}
	return map[string]any{"error": "The answer does not have the form that it must have: " + err.Error() + ". Call " + setModelResponse + " again."}
}

// stateDelta is what a final answer leaves in the session's state.
func stateDelta(node *agent.Agent, e *session.Event, value any, formed bool) map[string]any {
	if node.OutputKey == "" || len(e.Calls()) > 0 || e.ErrorCode == codeOutput {
		return nil
	}
	if formed {
		return map[string]any{node.OutputKey: value}
	}
	if text := e.Text(); text != "" {
		return map[string]any{node.OutputKey: text}
	}
	return nil
}
