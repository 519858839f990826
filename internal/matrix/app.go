package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

// WaitTools are the tools that wait, by what they wait for.
func WaitTools() map[string]string {
	return map[string]string{"credential": "read", "confirmation": "pay", "long_running": "job", "input": agent.RequestInputTool}
}

// toolArgs are what a model, or a function, calls a tool with.
func toolArgs(name string) map[string]any {
	return map[string]map[string]any{"read": {}, "pay": {"amount": 3}, "job": {}, agent.RequestInputTool: {"message": "How many?"}}[name]
}

type payment struct {
	Amount int `json:"amount"`
}

// App has an agent for each cell, named KIND_WAIT; login is the credential of those that need one.
func App(login agent.Auth) (tarry.App, error) {
	waiting, err := waitingTools(login)
	if err != nil {
		return tarry.App{}, err
	}
	app := tarry.App{Tools: waiting, CustomAgents: workflows.Agents{}, Callbacks: around(), Models: map[string]models.Factory{"matrix": model}}
	for _, wait := range slices.Sorted(maps.Keys(WaitTools())) {
		used := WaitTools()[wait]
		app.CustomAgents["flow_"+wait] = flow(used)
		for _, kind := range slices.Sorted(maps.Keys(Kinds(used, wait))) {
			root := Kinds(used, wait)[kind]
			root.Model = "matrix/one"
			app.Agents = append(app.Agents, &agent.Definition{App: kind + "_" + wait, Root: root})
		}
	}
	return app, nil
}

func waitingTools(login agent.Auth) ([]tools.Tool, error) {
	read, err := tool.New("read", "Reads.", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := auth.Token(ctx, login.Key)
		return "was read", err //nolint:wrapcheck // as it is
	}, tool.Credential(login))
	if err != nil {
		return nil, fmt.Errorf("make tool: %w", err)
	}
	pay, err := tool.New("pay", "Pays.", func(_ context.Context, in payment) (string, error) {
		return fmt.Sprintf("paid %d", in.Amount), nil
	}, tool.RequireConfirmation())
	if err != nil {
		return nil, fmt.Errorf("make tool: %w", err)
	}
	job, err := tool.New("job", "Begins.", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"status": "pending"}, nil
	}, tool.LongRunning())
	if err != nil {
		return nil, fmt.Errorf("make tool: %w", err)
	}
	return []tools.Tool{read, pay, job}, nil
}

// flow is a custom agent that runs a child which waits, and waits itself.
func flow(used string) workflows.AgentFunc {
	return func(a *workflows.Agent) error {
		if _, err := a.Run("asker"); err != nil {
			return err //nolint:wrapcheck // as it is
		}
		var out json.RawMessage
		if err := a.Call(used, toolArgs(used), &out); err != nil {
			return err //nolint:wrapcheck // as it is
		}
		if _, err := a.Run("follower"); err != nil {
			return err //nolint:wrapcheck // as it is
		}
		return a.Emit(workflows.Emission{Text: "the flow got " + string(out)})
	}
}

// Kinds are the agents of a wait, by their kind; name is that of the tool that waits.
func Kinds(name, wait string) map[string]*agent.Agent {
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

func around() callbacks.Set {
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

func model(context.Context, string) (models.Model, error) { return modelFunc(answer), nil }

// modelFunc is a model that answers with one part.
type modelFunc func(r *models.Request) *genai.Part

// GenerateContent implements [models.Model].
func (f modelFunc) GenerateContent(_ context.Context, r *models.Request, _ bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		yield(&models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{f(r)}}, TurnComplete: true}, nil)
	}
}

// answer calls the one tool that its agent has, and says what came of it; an agent without one follows.

func answer(r *models.Request) *genai.Part {
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
