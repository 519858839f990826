package runs

import (
	"encoding/json"
	"time"

	"tarry/auth"
	"tarry/wire"
)

// Run is where a session stands.
type Run struct {
	App     string `json:"app"`
	User    string `json:"user"`
	Session string `json:"session"`
	// State is one of wire's: running, waiting_credential, waiting_input, waiting_confirmation, idle, or the ending of a closed session. "new" before the first
	// message.
	State      string    `json:"state"`
	Mode       string    `json:"mode"`
	Invocation string    `json:"invocation"`
	WaitingFor []Waiting `json:"waiting_for"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
}

// Waiting is what a run waits for: a login, what a server wants of the person besides, or the approval of a call.
type Waiting struct {
	// Kind is "login", "key" (a credential that a person types in), "input", "confirmation", "question" (a tool asks for data) or "result" (of a long-running call, whose id
	// is the request's).
	Kind     string `json:"kind"`
	Request  string `json:"request"`
	Link     string `json:"link"`
	Provider string `json:"provider"`
	Tool     string `json:"tool"`
	Toolset  string `json:"toolset"`
	Agent    string `json:"agent"`
	// Call is the tool call that asked first; empty where a toolset did.
	Call     string    `json:"call,omitempty"`
	Scopes   []string  `json:"scopes"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Reminders counts how often the person was reminded, LastReminded says when last.
	Reminders    int       `json:"reminders,omitempty"`
	LastReminded time.Time `json:"last_reminded,omitzero"`
	// What follows is in the answer to status only. Arguments belong to kinds "confirmation" and "result", Hint to
	// "confirmation": what would be called, or was, and why the person is asked.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Hint      string          `json:"hint,omitempty"`
	// Message, Schema and Payload belong to kind "question": what the tool asks, the JSON Schema of the answer if it has one,
	// and what it shows besides.
	Message string          `json:"message,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Login is a request as its person sees it.
type Login struct {
	Request  string      `json:"request"`
	Kind     string      `json:"kind"`
	Status   auth.Status `json:"status"`
	Link     string      `json:"link"`
	App      string      `json:"app"`
	User     string      `json:"user"`
	Session  string      `json:"session"`
	Agent    string      `json:"agent"`
	Tool     string      `json:"tool"`
	Toolset  string      `json:"toolset"`
	Provider string      `json:"provider"`
	Server   string      `json:"server"`
	Scopes   []string    `json:"scopes"`
	Created  time.Time   `json:"created"`
	Deadline time.Time   `json:"deadline,omitzero"`
	Ended    time.Time   `json:"ended,omitzero"`
	// Reminders and LastReminded are those of a [Waiting].
	Reminders    int       `json:"reminders,omitempty"`
	LastReminded time.Time `json:"last_reminded,omitzero"`
}

// Status is a run with how its current invocation stands.
type Status struct {
	Run
	// InvocationStatus is "queued", "running", or one of wire's endings; empty before the first message was taken.
	InvocationStatus string `json:"invocation_status"`
	// Answer is the text of the last answer of a model that makes no calls.
	Answer string `json:"answer"`
	// Denied says that a login of the invocation was denied or expired.
	Denied bool `json:"denied"`
	// Error is what the invocation's last error event says.
	Error      string `json:"error,omitempty"`
	ModelCalls int    `json:"model_calls"`
	ToolCalls  int    `json:"tool_calls"`
}

// Start is the body that starts a run.
type Start struct {
	Task string    `json:"task"`
	Mode wire.Mode `json:"mode,omitempty"`
	// Session is the id of the session to create, or of a chat to go on with; empty means a new id.
	Session string `json:"session,omitempty"`
	// Streaming has pieces of answers told to streams that ask for them, while models give them.
	Streaming bool `json:"streaming,omitempty"`
}

// Started names what was started.
type Started struct {
	Session    string `json:"session"`
	Invocation string `json:"invocation"`
}
