package tarry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/agent/yaml"
	"tarry/callbacks"
	"tarry/models"
	"tarry/models/gemini"
	"tarry/models/openai"
	"tarry/models/scripted"
	"tarry/tools"
	"tarry/workflows"
)

// App is what an application brings. The zero value brings nothing: a worker then runs agents from files, with MCP
// servers as their tools.
type App struct {
	// Agents are definitions made in Go; those in the agents folder come on top. Two of one app name are an error.
	Agents []*agent.Definition
	// Tools are Go functions that agents name.
	Tools []tools.Tool
	// Schemas are the forms that output_schema and input_schema of agents in files may name; [Schema] makes one of a Go type.
	Schemas map[string]json.RawMessage
	// Callbacks are Go functions that agents name, to be run around their model and tool calls.
	Callbacks callbacks.Set
	// CustomAgents are agents that are Go functions, by the names that definitions use (agent_class in files). Register the
	// same with package replay.
	CustomAgents workflows.Agents
	// Models are providers by the prefix of the names that they serve ("acme" serves "acme/large"). They come before
	// Tarry's own: gemini, openai and, where a scripts folder is set, scripted.
	Models map[string]models.Factory
}

// definitions reads the agents folder and checks everything that can be checked before a run.
func (a App) definitions(c Config, functions *tools.Registry) ([]*agent.Definition, error) {
	all := slices.Clone(a.Agents)
	for name, schema := range a.Schemas {
		if _, err := tools.CompileSchema(schema); err != nil {
			return nil, fmt.Errorf("register schema %s: %w", name, err)
		}
	}
	for _, d := range a.Agents {
		if err := d.Validate(); err != nil {
			return nil, fmt.Errorf("agent %s: %w", d.App, err)
		}
	}
	if c.AgentsDir != "" {
		loaded, err := yaml.Load(c.AgentsDir, yaml.Options{Functions: functions.Names(), Schemas: a.Schemas, Callbacks: a.Callbacks.All(), CustomAgents: a.CustomAgents.Names(), AllowStdio: c.AllowStdio, Vars: c.Vars})
		if err != nil {
			return nil, fmt.Errorf("read agents in %s: %w", c.AgentsDir, err)
		}
		all = append(all, loaded...)
	}
	seen := map[string]bool{}
	for _, d := range all {
		if seen[d.App] {
			return nil, fmt.Errorf("two agents are called %q; give one another folder name", d.App)
		}
		seen[d.App] = true
		for node := range d.All() {
			if err := errors.Join(schemas(node), a.registered(node)); err != nil {
				return nil, err
			}
			for _, tool := range node.Tools {
				if _, ok := functions.Tool(tool.Function); tool.Function != "" && !ok {
					return nil, fmt.Errorf("agent %s uses the tool %q, which is not registered; there are %v", node.Name, tool.Function, functions.Names())
				}
			}
		}
	}
	return all, nil
}

// registered says whether all functions that an agent names are there.
func (a App) registered(node *agent.Agent) error {
	if _, ok := a.CustomAgents[node.Custom]; node.Custom != "" && !ok {
		return fmt.Errorf("agent %s is the custom agent %q, which is not registered; there are %v", node.Name, node.Custom, a.CustomAgents.Names())
	}
	for p, list := range node.Callbacks {
		for _, c := range list {
			if known := a.Callbacks.Names(p); !slices.Contains(known, c.Name) {
				return fmt.Errorf("agent %s: %s names %q, which is not registered; there are %v", node.Name, p.Key(), c.Name, known)
			}
		}
	}
	return nil
}

func schemas(node *agent.Agent) error {
	for field, schema := range map[string]json.RawMessage{"output_schema": node.OutputSchema, "input_schema": node.InputSchema} {
		if len(schema) == 0 {
			continue
		}
		if _, err := tools.CompileSchema(schema); err != nil {
			return fmt.Errorf("agent %s: %s: %w", node.Name, field, err)
		}
	}
	return nil
}

func (a App) models(c Config, client httpClient) (*models.Registry, error) {
	r := models.NewRegistry()
	own := map[string]models.Factory{
		gemini.Provider: gemini.Factory(gemini.Config{APIKey: c.GeminiKey, HTTPClient: client, BaseURL: c.GeminiBaseURL}),
		openai.Provider: openai.Factory(openai.Config{APIKey: c.OpenAIKey, HTTPClient: client, BaseURL: c.OpenAIBaseURL}),
	}
	if c.ScriptsDir != "" {
		own[scripted.Provider] = scripted.Factory(scripted.Config{Dir: c.ScriptsDir, Journal: c.ScriptJournal})
	}
	for prefix, factory := range a.Models {
		own[prefix] = factory
	}
	for prefix, factory := range own {
		if err := r.Register(prefix, factory); err != nil {
			return nil, fmt.Errorf("register models %s: %w", prefix, err)
		}
	}
	return r, nil
}
