package builtin

import (
	"context"
	"encoding/json"

	"tarry/agent"
	"tarry/tools"
)

// LoadArtifacts returns the tool by which a model asks to see artifacts, as ADK's load_artifacts. Its response only repeats the
// names: whoever makes the next request to the model puts their contents there, for that request alone.
func LoadArtifacts() tools.Tool { return loadArtifacts{} }

type loadArtifacts struct{}

// Declaration implements [tools.Tool].
func (loadArtifacts) Declaration() tools.Declaration {
	return tools.Declaration{
		Name:        agent.LoadArtifacts,
		Description: "Shows you the contents of artifacts, for the next request only. Call it whenever you need an artifact, such as a file that the user has uploaded.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"artifact_names":{"type":"array","items":{"type":"string"},"description":"The names of the artifacts."}}}`),
		Idempotent: true,
	}
}

// Call implements [tools.Tool].
func (loadArtifacts) Call(_ context.Context, call tools.Call) (tools.Result, error) {
	in := struct {
		Names []string `json:"artifact_names"`
	}{}
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tools.Result{}, tools.Errorf("artifact_names is not a list of names")
	}
	if in.Names == nil {
		in.Names = []string{}
	}
	return tools.Result{Response: map[string]any{
		"artifact_names": in.Names,
		"status":         "The contents were shown once and are gone again. Call load_artifacts again to see them again.",
	}}, nil
}
