package wire

import "encoding/json"

// The inputs of local activities stand in no history, so these may hold content.

// EmitInput is the input of [ActivityEmit].
type EmitInput struct {
	Agent string   `json:"agent"`
	Heads []string `json:"heads"`
	Scope string   `json:"scope,omitempty"`
	// Text is what the agent says; empty for nothing.
	Text       string                     `json:"text,omitempty"`
	StateDelta map[string]json.RawMessage `json:"state_delta,omitempty"`
	Escalate   bool                       `json:"escalate,omitempty"`
}

// EmitResult is its result.
type EmitResult struct {
	Event string `json:"event"`
}

// OpenInput is the input of [ActivityOpen].
type OpenInput struct {
	Agent string          `json:"agent"`
	Heads []string        `json:"heads"`
	Scope string          `json:"scope,omitempty"`
	Lists []string        `json:"lists,omitempty"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args,omitempty"`
}

// OpenResult is its result.
type OpenResult struct {
	// Event makes the call.
	Event string `json:"event"`
	Call  Call   `json:"call"`
}

// MaxRead bounds what a workflow reads at once, in bytes of JSON: no payload of Temporal may be longer than 64 KiB.
const MaxRead = 48 << 10

// ReadInput is the input of [ActivityRead].
type ReadInput struct {
	Heads []string `json:"heads"`
	// Key of the state that is wanted; empty: the response in Event.
	Key   string `json:"key,omitempty"`
	Event string `json:"event,omitempty"`
	// Error says that of the response only its error is wanted.
	Error bool `json:"error,omitempty"`
}

// ReadResult is its result. It stands in the history: who reads a value puts it there.
type ReadResult struct {
	// Value is absent where there is none.
	Value json.RawMessage `json:"value,omitempty"`
	// TooLarge is the size of a value that is longer than crosses to a workflow, in bytes.
	TooLarge int `json:"too_large,omitempty"`
}

// KeptPart is the most that a [KeptResult] brings, in bytes; base64 makes a third more of it.
const KeptPart = 36 << 10

// KeepInput is the input of [ActivityKeep].
type KeepInput struct {
	Body []byte `json:"body"`
}

// KeepResult is its result.
type KeepResult struct {
	Kept string `json:"kept"`
}

// KeptInput is the input of [ActivityKept].
type KeptInput struct {
	Kept string `json:"kept"`
	// Part counts from 0.
	Part int `json:"part,omitempty"`
}

// KeptResult is its result.
type KeptResult struct {
	Body []byte `json:"body"`
	More bool   `json:"more,omitempty"`
}
