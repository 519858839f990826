package auth

import (
	"encoding/json"

	"tarry/agent"
)

// Types of a [Need] that is no login, and that a tool of the application has.
const (
	// TypeQuestion: the tool asks a person for data before it goes on (ADK's adk_request_input).
	TypeQuestion = "question"
	// TypeResult: the tool has run, and whoever does the work that it began says later what came of it (ADK's
	// LongRunningFunctionTool). The request's id is the call's.
	TypeResult = "result"
)

// Prompt is what a tool asks a person.
type Prompt struct {
	// Message is shown to the person, as text.
	Message string `json:"message"`
	// Schema is the JSON Schema of the answer; empty means that any answer will do.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Payload is what the tool shows besides, as JSON; empty when it shows nothing.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// AnswerError says what of an answer does not fit, and what would. Nothing was changed, and the request waits as before. It
// does not quote the answer in full, and what it quotes is the answerer's own.
type AnswerError struct{ Text string }

// Error implements error.
func (e *AnswerError) Error() string { return e.Text }

// QuestionSlot is where the answers to the questions of one call live. No grant is ever in it, and no two calls share one.
func QuestionSlot(owner agent.Owner, call string) Slot {
	return Slot{Owner: owner, Issuer: TypeQuestion, Client: "call:" + call}
}

// ResultSlot is where the result of one long-running call lives.
func ResultSlot(owner agent.Owner, call string) Slot {
	return Slot{Owner: owner, Issuer: TypeResult, Client: "call:" + call}
}
