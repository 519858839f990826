package builtin

import (
	"context"

	"tarry/agent"
	"tarry/tools"
)

// ExitLoop returns the tool that ends the enclosing LoopAgent. The agent that calls it makes no further model call, and
// its response is an empty object, as in ADK.
func ExitLoop() tools.Tool { return exitLoop{} }

type exitLoop struct{}

// Declaration implements [tools.Tool]. The description is ADK's, so that prompts written for it work.
func (exitLoop) Declaration() tools.Declaration {
	return tools.Declaration{
		Name:        agent.ExitLoop,
		Description: "Exits the loop.\n\nCall this function only when you are instructed to do so.",
		Idempotent:  true,
	}
}

// Call implements [tools.Tool]. Arguments that a model makes up are ignored.
func (exitLoop) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Response: map[string]any{}, Escalate: true, SkipSummarization: true}, nil
}
