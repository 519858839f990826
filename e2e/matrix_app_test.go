package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/genai"

	"tarry"
	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/tools"
	tool "tarry/tools/function"
	"tarry/workflows"
)

// The apps of the matrix: one for each kind of agent and each kind of wait, named KIND_WAIT.

// waitTools are the tools that wait, by what they wait for.
func waitTools() map[string]string {
	return map[string]string{"credential": "read", "confirmation": "pay", "long_running": "job", "input": agent.RequestInputTool}
}

// toolArgs are what a model, or a function, calls a tool with.
func toolArgs(name string) map[string]any {
	return map[string]map[string]any{"read": {}, "pay": {"amount": 3}, "job": {}, agent.RequestInputTool: {"message": "How many?"}}[name]
}

type payment struct {
	Amount int `json:"amount"`
}

// matrixApp is the app of all cells; login is the credential of those that need one.
func matrixApp(login agent.Auth) (tarry.App, error) {
	read, err := tool.New("read", "Reads.", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := auth.Token(ctx, login.Key)
		return "was read", err
	}, tool.Credential(login))
	if err != nil {
		return tarry.App{}, err
	}
	pay, err := tool.New("pay", "Pays.", func(_ context.Context, in payment) (string, error) {
		return fmt.Sprintf("paid %d", in.Amount), nil
	}, tool.RequireConfirmation())
	if err != nil {
		return tarry.App{}, err
	}
	job, err := tool.New("job", "Begins.", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"status": "pending"}, nil
	}, tool.LongRunning())
	if err != nil {
		return tarry.App{}, err
	}
	app := tarry.App{Tools: []tools.Tool{read, pay, job}, CustomAgents: workflows.Agents{}, Callbacks: matrixCallbacks(), Models: map[string]models.Factory{"matrix": matrixModel}}
	for _, wait := range slices.Sorted(maps.Keys(waitTools())) {
		used := waitTools()[wait]
		app.CustomAgents["flow_"+wait] = flow(used)
		for _, kind := range slices.Sorted(maps.Keys(matrixKinds(used, wait))) {
			root := matrixKinds(used, wait)[kind]
			root.Model = "matrix/one"
			app.Agents = append(app.Agents, &agent.Definition{App: kind + "_" + wait, Root: root})
		}
	}
	return app, nil
}

// flow is a custom agent that runs a child which waits, and waits itself.
func flow(used string) workflows.AgentFunc {
	return func(a *workflows.Agent) error {
		if _, err := a.Run("asker"); err != nil {
			return err
		}
		var out json.RawMessage
		if err := a.Call(used, toolArgs(used), &out); err != nil {
			return err
		}
		if _, err := a.Run("follower"); err != nil {
			return err
		}
		return a.Emit(workflows.Emission{Text: "the flow got " + string(out)})
	}
}

func matrixKinds(name, wait string) map[string]*agent.Agent {
	used := agent.Tool{Function: name}
	if name == agent.RequestInputTool {
		used = agent.Tool{Builtin: name}
	}
	asker := func() *agent.Agent {
		return &agent.Agent{Name: "asker", Kind: agent.KindLLM, Model: "matrix/one", Tools: []agent.Tool{used}, OutputKey: "asked"}
	}
	both := func() []*agent.Agent {
		return []*agent.Agent{asker(), {Name: "follower", Kind: agent.KindLLM, Model: "matrix/one"}}
	}
	return map[string]*agent.Agent{
		"llm":  asker(),
		"loop": {Name: "loop", Kind: agent.KindLoop, MaxIterations: 2, SubAgents: both()},
		"sequential": {Name: "sequence", Kind: agent.KindSequential, SubAgents: both(), Callbacks: agent.Callbacks{
			agent.BeforeAgent: {{Name: "begin"}}, agent.AfterAgent: {{Name: "end"}},
		}},
		"parallel":   {Name: "side", Kind: agent.KindParallel, SubAgents: both()},
		"agent_tool": {Name: "caller", Kind: agent.KindLLM, Tools: []agent.Tool{{Agent: &agent.AgentTool{Agent: asker()}}}},
		"transfer":   {Name: "desk", Kind: agent.KindLLM, SubAgents: both()},
		"custom":     {Name: "flow", Kind: agent.KindCustom, Custom: "flow_" + wait, Tools: []agent.Tool{used}, SubAgents: both()},
	}
}

func matrixCallbacks() callbacks.Set {
	return callbacks.Set{
		BeforeAgent: map[string]callbacks.BeforeAgent{"begin": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
			c.Set("begun", c.Agent)
			return nil, nil
		}},
		AfterAgent: map[string]callbacks.AfterAgent{"end": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
			return genai.NewContentFromText(fmt.Sprint("after ", c.State["begun"]), genai.RoleModel), nil
		}},
	}
}

// matrixModel calls the one tool that its agent has, and says what came of it; an agent without one follows.
func matrixModel(context.Context, string) (models.Model, error) { return modelFunc(matrixAnswer), nil }

func matrixAnswer(r *models.Request) *genai.Part {
	last := r.Contents[len(r.Contents)-1].Parts
	if response := last[0].FunctionResponse; response != nil {
		body, err := json.Marshal(response.Response)
		if err != nil {
			return &genai.Part{Text: err.Error()}
		}
		return &genai.Part{Text: r.Agent + " got " + string(body)}
	}
	var names []string
	for _, t := range r.Config.Tools {
		for _, d := range t.FunctionDeclarations {
			names = append(names, d.Name)
		}
	}
	call := func(name string, args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, Args: args}}
	}
	switch r.Agent {
	case "asker":
		return call(names[0], toolArgs(names[0]))
	case "caller":
		return call("asker", map[string]any{"request": "please"})
	case "desk":
		return call(agent.TransferToAgent, map[string]any{"agent_name": "asker"})
	default:
		return &genai.Part{Text: r.Agent + " follows"}
	}
}
