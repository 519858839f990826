package agent

import "strings"

// Names of function calls that the framework makes. A model, a tool or an imported event that uses one is refused: it
// could otherwise forge a question to the person or an answer to it.
const (
	RequestCredential   = "adk_request_credential"
	RequestConfirmation = "adk_request_confirmation"
	RequestInput        = "adk_request_input"
	TransferToAgent     = "transfer_to_agent"
	// ToolsetAuthPrefix begins the functionCallId of a request that a toolset makes before any tool exists.
	ToolsetAuthPrefix = "_adk_toolset_auth_"
	// ExitLoop is the tool that ends a LoopAgent.
	ExitLoop = "exit_loop"
	// RequestInputTool is the tool by which a model asks the person.
	RequestInputTool = "request_input"
	// LoadArtifacts is the tool by which a model sees artifacts.
	LoadArtifacts = "load_artifacts"
	// LoadMemory is the tool by which a model looks up earlier sessions.
	LoadMemory = "load_memory"
	// PreloadMemory looks them up before each model call; no model calls it.
	PreloadMemory = "preload_memory"
	// UserAuthor is the author of what a person says; no agent may have this name.
	UserAuthor = "user"
)

// Builtins are the tools that a definition may name as builtin.
func Builtins() []string {
	return []string{ExitLoop, RequestInputTool, LoadArtifacts, LoadMemory, PreloadMemory}
}

// Reserved says whether no tool may be called name.
func Reserved(name string) bool {
	return strings.HasPrefix(name, "adk_request_") || strings.HasPrefix(name, "_adk_") || name == TransferToAgent
}
