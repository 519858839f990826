package tools

import "encoding/json"

// AnswerRequiredError says that a tool needs data of a person before it goes on (ADK's RequestInput). It starts a wait, as a
// missing login does; it is no failure. The call must not have had any effect yet: it is made again, with [Call.Answer] set,
// once the person has answered, and not at all if nobody does. A repeated call may ask for more.
type AnswerRequiredError struct {
	// Message is shown to the person, as text. It must hold no secret.
	Message string
	// Schema is the JSON Schema of the answer, without references; empty means that any JSON will do. Only an answer that fits
	// reaches the tool.
	Schema json.RawMessage
	// Payload is shown to the person besides; nil means nothing. It must encode as JSON.
	Payload any
}

// Error implements error.
func (e *AnswerRequiredError) Error() string { return "the tool asks a person" }

// LongRunning is a tool that begins work which others finish (ADK's LongRunningFunctionTool). What it returns is an interim
// result, shown to clients and not to the model; one that is empty is not shown. The run then waits, and whoever does the
// work sends the final result under the call's id. The tool is not called again after it has returned. A [Result]'s Escalate
// and SkipSummarization do nothing then; an error is the call's result, and nothing is waited for.
type LongRunning interface {
	Tool
	LongRunning() bool
}
