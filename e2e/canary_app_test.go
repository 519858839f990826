package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/genai"

	"tarry"
	"tarry/agent"
	"tarry/callbacks"
	"tarry/models"
	"tarry/tools"
	tool "tarry/tools/function"
	"tarry/workflows"
)

// canaryContent marks what people and models say in the app "canary": it belongs to the session, and stands in no history, memo
// or log.
const canaryContent = "canary-content"

// addCanary adds the app "canary" to a worker: a custom agent above an agent that calls another as a tool, with all kinds of
// waits on both levels, and failures that repeat what they know.
func addCanary(app *tarry.App) error {
	fragile, err := tool.NewCall("fragile", "Fails with the answer.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
		if len(c.Answers) == 0 {
			return nil, &tools.AnswerRequiredError{Message: canaryContent, Payload: canaryContent}
		}
		return nil, &tools.Error{Message: "no room for " + string(c.Answer), Cause: fmt.Errorf("rooms: %s", c.Answer)}
	})
	if err != nil {
		return err
	}
	app.Tools = append(app.Tools, fragile)
	app.CustomAgents["canary"] = canaryFlow
	app.Models["canary"] = func(context.Context, string) (models.Model, error) { return canaryModel{}, nil }
	app.Callbacks.AfterTool = map[string]callbacks.AfterTool{"canary": func(_ context.Context, c *callbacks.Context, call tools.Call, _ map[string]any) (map[string]any, error) {
		c.Set("heard", canaryContent)
		if call.Name == "fragile" {
			return nil, fmt.Errorf("refused: %s", call.Answer)
		}
		return nil, nil
	}}
	used := []agent.Tool{{Function: "read"}, {Function: "job"}, {Function: "fragile"}, {Function: "pay"}, {Builtin: agent.RequestInputTool}}
	inner := &agent.Agent{Name: "inner", Kind: agent.KindLLM, Model: "canary/one", Tools: used, Callbacks: agent.Callbacks{agent.AfterTool: {{Name: "canary"}}}}
	caller := &agent.Agent{Name: "caller", Kind: agent.KindLLM, Model: "canary/one", Tools: []agent.Tool{{Agent: &agent.AgentTool{Agent: inner}}}, OutputKey: "called"}
	root := &agent.Agent{Name: "canary", Kind: agent.KindCustom, Custom: "canary", Tools: used, SubAgents: []*agent.Agent{caller}}
	app.Agents = append(app.Agents, &agent.Definition{App: "canary", Root: root})
	return nil
}

// canaryFlow looks at no result: what a function reads stands in the history, which is its choice.
func canaryFlow(a *workflows.Agent) error {
	if _, err := a.Run("caller"); err != nil {
		return err
	}
	if err := a.Call(agent.RequestInputTool, map[string]any{"message": canaryContent}, nil); err != nil {
		return err
	}
	if err := a.Call("job", nil, nil); err != nil {
		return err
	}
	said := workflows.Emission{Text: canaryContent, State: map[string]any{"said": canaryContent, "user:said": canaryContent, "temp:said": canaryContent}}
	if err := a.Emit(said); err != nil {
		return err
	}
	// The message of a tool that fails is read, and stands in the history; in no log.
	var refused *workflows.ToolError
	if err := a.Call("nobody-knows-this-tool", nil, nil); !errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("over: %w", refused)
}

// canaryModel calls everything at once, and then says something.
type canaryModel struct{}

func (canaryModel) GenerateContent(_ context.Context, r *models.Request, _ bool) iter.Seq2[*models.Response, error] {
	call := func(name string, args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, Args: args}}
	}
	said := genai.NewContentFromText(canaryContent+" of "+r.Agent, genai.RoleModel)
	last := r.Contents[len(r.Contents)-1].Parts
	switch {
	case last[0].FunctionResponse != nil:
	case r.Agent == "caller":
		said.Parts = append(said.Parts, call("inner", map[string]any{"request": canaryContent}))
	case r.Agent == "inner":
		said.Parts = append(said.Parts, call("read", nil), call("job", nil), call("fragile", nil), call("pay", map[string]any{"amount": 3, "to": canaryContent}),
			call(agent.RequestInputTool, map[string]any{"message": canaryContent, "response_schema": map[string]any{
				"type": "string", "pattern": "^canary-content [a-z]+$", "title": canaryContent,
			}}))
	}
	return func(yield func(*models.Response, error) bool) {
		yield(&models.Response{Content: said, TurnComplete: true}, nil)
	}
}
