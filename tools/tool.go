package tools

import (
	"context"
	"encoding/json"

	"tarry/agent"
	"tarry/auth"
)

// Declaration is what a model is told about a tool.
type Declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema; empty: no parameters
	Response    json.RawMessage `json:"response,omitempty"`   // JSON Schema; empty: not declared
	// Idempotent says that the tool may run again when it is not known how an attempt ended: it reads only, or a repeat
	// with the same arguments changes nothing more. Otherwise the model is told that the outcome is unknown.
	Idempotent bool `json:"idempotent,omitempty"`
}

// Call is one call by a model.
type Call struct {
	// ID is the same in every attempt and in no other call: the idempotency key.
	ID   string
	Name string
	Args json.RawMessage
	// Session facts, for tools that keep something per session.
	Owner      agent.Owner
	Session    string
	Invocation string
	Agent      string
	// State is the session's state as the model saw it; read only.
	State map[string]any
	// Resume is set when the call is repeated after an [InputRequiredError].
	Resume *Resume
	// Confirmation is set when the call is repeated after a [ConfirmationRequiredError]: the answer to the latest one.
	Confirmation *Confirmation
	// Answer is set when the call is repeated after an [AnswerRequiredError]: what the person answered to the latest one, as
	// JSON that fits its schema. Answers are those to all of them, in order.
	Answer  json.RawMessage
	Answers []json.RawMessage
}

// Result is what a call gave.
type Result struct {
	// Response is shown to the model: a JSON object.
	Response map[string]any
	// StateDelta changes session state.
	StateDelta map[string]any
	// Escalate ends the enclosing loop.
	Escalate bool
	// SkipSummarization ends the agent's turn without another model call.
	SkipSummarization bool
}

// Tool is one function. Implementations are safe for concurrent use.
type Tool interface {
	Declaration() Declaration
	// Call runs the tool. It returns a [*auth.RequiredError] as it is when a person must log in, an [*InputRequiredError] when
	// its server wants something else of a person, a [*ConfirmationRequiredError] when a person should approve first, an
	// [*AnswerRequiredError] when it asks a person itself, an [*Error] for what the model should hear of, and any other error for a failure worth another attempt. ctx ends when the
	// call is cancelled.
	Call(ctx context.Context, call Call) (Result, error)
}

// Authorized is a tool that uses credentials; the ones it declares are those that [auth.Token] gives it.
type Authorized interface {
	Tool
	Credentials() []agent.Auth
}

// Toolset is a set of tools that must be listed first.
type Toolset interface {
	List(ctx context.Context) ([]Declaration, error)
	Call(ctx context.Context, call Call) (Result, error)
}

// Opener opens the toolset of a definition for one owner. What it keeps open (connections, processes) is its own affair:
// toolsets are opened for each activity and never closed by the caller.
type Opener interface {
	Open(ctx context.Context, def *agent.MCPToolset, owner agent.Owner, broker auth.Broker) (Toolset, error)
}
