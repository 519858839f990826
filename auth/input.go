package auth

import (
	"encoding/json"

	"tarry/agent"
)

// TypeInput is the type of a [Need] that is no login: a server wants something else of the person before it goes on with a
// call (MCP elicitation).
const TypeInput = "input"

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

// InputAnswer is what a person did.
type InputAnswer struct {
	Action string `json:"action"`
	// Content holds the form's fields, for an accepted form only.
	Content map[string]any `json:"content,omitempty"`
}

// Question is everything that a server wants at once.
type Question struct {
	Inputs []Input `json:"inputs"`
	// State goes back to the server unread (MCP requestState, revision 2026-07-28). Empty when the server sent none.
	State string `json:"state,omitempty"`
	// Plain says that the server knows no answers and only wants the same call again (error -32042, revision 2025-11-25).
	Plain bool `json:"plain,omitempty"`
	// Answers are those that need no person; they go back together with the person's.
	Answers map[string]InputAnswer `json:"answers,omitempty"`
}

// InputSlot is where the questions of one call live. No grant is ever in it, and no two calls share one.
func InputSlot(owner agent.Owner, server, call string) Slot {
	return Slot{Owner: owner, Issuer: TypeInput, Resource: server, Client: "call:" + call}
}
