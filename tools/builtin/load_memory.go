package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tarry/agent"
	"tarry/tools"
)

// LoadMemory returns the tool by which a model looks up what was said in earlier sessions of the same user, as ADK's load_memory.
func LoadMemory() tools.Tool { return loadMemory{} }

type loadMemory struct{}

// Declaration implements [tools.Tool].
func (loadMemory) Declaration() tools.Declaration {
	return tools.Declaration{
		Name:        agent.LoadMemory,
		Description: "Looks up what was said in earlier conversations with the user.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"The words to look for."}},"required":["query"]}`),
		Idempotent:  true,
	}
}

// Call implements [tools.Tool].
func (loadMemory) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	var in struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(call.Args, &in); err != nil || in.Query == "" {
		return tools.Result{}, tools.Errorf("query is missing: say in a text what to look for")
	}
	found, err := tools.SearchMemory(ctx, in.Query)
	if err != nil {
		return tools.Result{}, fmt.Errorf("%w: search memory: %w", tools.ErrNotExecuted, err)
	}
	memories := []any{}
	for _, m := range found {
		role := "model"
		if m.Author == agent.UserAuthor {
			role = agent.UserAuthor
		}
		memories = append(memories, map[string]any{
			"author": m.Author, "timestamp": m.Time.UTC().Format(time.RFC3339),
			"content": map[string]any{"role": role, "parts": []any{map[string]any{"text": m.Text}}},
		})
	}
	return tools.Result{Response: map[string]any{"memories": memories}}, nil
}
