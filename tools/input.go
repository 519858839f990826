package tools

import "tarry/auth"

// The vocabulary of what a server wants from a person; package auth owns it, because requests keep it.
type (
	// Input is one thing that a server wants.
	Input = auth.Input
	// InputAnswer is what the person did.
	InputAnswer = auth.InputAnswer
)

// Modes and actions; see package auth.
const (
	InputURL     = auth.InputURL
	InputForm    = auth.InputForm
	InputAccept  = auth.InputAccept
	InputDecline = auth.InputDecline
	InputCancel  = auth.InputCancel
)

// InputRequiredError says that a call cannot go on before a person has done something for the server. It starts a wait,
// as a missing login does; it is no failure. The call did not run, and is made again with a [Resume].
type InputRequiredError struct {
	Inputs []Input
	// State goes back to the server unread (MCP requestState, revision 2026-07-28). Empty when the server sent none.
	State string
	// Plain says that the server knows no answers and only wants the same call again (error -32042, revision 2025-11-25).
	Plain bool
	// Answers are those that need no person; the [Resume] has them too.
	Answers map[string]InputAnswer
}

// Error implements error. It names no URL and no server's text.
func (e *InputRequiredError) Error() string { return "the server wants input from a person" }

// Resume is what a repeated call brings along.
type Resume struct {
	State string
	// Answers has one entry for each [Input.Key]; nil for a plain repeat.
	Answers map[string]InputAnswer
	// Visited are the URLs that the person was shown for this call and did not decline.
	Visited []string
}
