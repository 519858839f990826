package tools

import "encoding/json"

// Modes of an [Input], as in the MCP specification's elicitation.
const (
	// InputURL: the person visits a URL; neither model nor client sees what happens there.
	InputURL = "url"
	// InputForm: the person fills in a form.
	InputForm = "form"
)

// Actions of an [InputAnswer], as in the MCP specification's elicitation.
const (
	InputAccept  = "accept"
	InputDecline = "decline"
	InputCancel  = "cancel"
)

// Input is one thing that a server wants from a person before it goes on with a call.
type Input struct {
	// Key is the server's name for it (the key of inputRequests); for the older -32042 error the elicitation id.
	Key  string `json:"key"`
	Mode string `json:"mode"`
	// Message is the server's text to the person: shown as text, never to the model.
	Message string `json:"message,omitempty"`
	// URL is where the person is to go; it may work like a password.
	URL string `json:"url,omitempty"`
	// Schema is the form's JSON Schema: a flat object of strings, numbers, booleans and enumerations.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// InputRequiredError says that a call cannot go on before a person has done something for the server. It starts a wait,
// as a missing login does; it is no failure. The call did not run, and is made again with a [Resume].
type InputRequiredError struct {
	Inputs []Input
	// State goes back to the server unread (MCP requestState, revision 2026-07-28). Empty when the server sent none.
	State string
	// Plain says that the server knows no answers and only wants the same call again (error -32042, revision 2025-11-25).
	Plain bool
}

// Error implements error. It names no URL and no server's text.
func (e *InputRequiredError) Error() string { return "the server wants input from a person" }

// Resume is what a repeated call brings along.
type Resume struct {
	State string `json:"state,omitempty"`
	// Answers has one entry for each [Input.Key]; empty for a plain repeat.
	Answers map[string]InputAnswer `json:"answers,omitempty"`
}

// InputAnswer is what a person did.
type InputAnswer struct {
	Action string `json:"action"`
	// Content holds the form's fields, for an accepted form only.
	Content map[string]any `json:"content,omitempty"`
}
