package tools

import "encoding/json"

// Guarded is a tool whose calls run only after a person has approved them, one by one and with the arguments that they have.
type Guarded interface {
	Tool
	RequiresConfirmation() bool
}

// ConfirmationRequiredError says that the tool's code wants a person's approval before it does what it was called for
// (ADK's tool_context.request_confirmation). It starts a wait, as a missing login does; it is no failure. The call must not
// have had any effect yet: it is made again, with [Call.Confirmation] set, once the person approves, and not at all if the
// person rejects it. A repeated call may ask once more.
type ConfirmationRequiredError struct {
	// Hint is shown to the person, as text. It must hold no secret.
	Hint string
	// Payload is what the person's client may fill in and send back; nil means nothing. It must encode as JSON.
	Payload any
}

// Error implements error.
func (e *ConfirmationRequiredError) Error() string { return "the tool wants a person's approval" }

// Confirmation is a person's answer to a [ConfirmationRequiredError].
type Confirmation struct {
	// Confirmed is true in every call that is made: a rejected one is not.
	Confirmed bool
	// Payload is what came back, as JSON; nil when nothing did. It is the client's word: check it like an argument.
	Payload json.RawMessage
}
