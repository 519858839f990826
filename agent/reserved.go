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
	// UserAuthor is the author of what a person says; no agent may have this name.
	UserAuthor = "user"
)

// Reserved says whether no tool may be called name.
func Reserved(name string) bool {
	return strings.HasPrefix(name, "adk_request_") || strings.HasPrefix(name, "_adk_") || name == TransferToAgent
}
