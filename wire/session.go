package wire

import (
	"encoding/json"
	"time"

	"tarry/agent"
)

// Mode of a session.
type Mode string

// The modes.
const (
	// ModeJob runs one invocation and completes.
	ModeJob Mode = "job"
	// ModeChat stays for further messages.
	ModeChat Mode = "chat"
)

// SessionInput starts [WorkflowSession].
type SessionInput struct {
	// Definition is the hash that the session is pinned to.
	Definition string     `json:"definition"`
	Plan       agent.Plan `json:"plan"`
	Mode       Mode       `json:"mode"`
	// SearchAttributes says whether the namespace has ours.
	SearchAttributes bool   `json:"search_attributes,omitempty"`
	Timing           Timing `json:"timing,omitzero"`
	// Carry is set when a run continues another.
	Carry *Carry `json:"carry,omitempty"`
}

// Timing holds durations that differ between development and production; zero fields mean the defaults of package
// workflows.
type Timing struct {
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// ContinueAfter is the number of history events after which a run continues as new; 0 leaves it to the server.
	ContinueAfter int `json:"continue_after,omitempty"`
}

// Carry is the state that one run hands to the next.
type Carry struct {
	// Taken lists inbox ids that were processed, newest last, bounded.
	Taken []string `json:"taken,omitempty"`
	// Pending lists inbox ids that were announced and not processed.
	Pending []string `json:"pending,omitempty"`
	// Early holds outcomes that no wait has matched yet, oldest first, bounded.
	Early []Resolved `json:"early,omitempty"`
	// Invocation is the one in progress, or nil.
	Invocation *Invocation `json:"invocation,omitempty"`
	Heads      []string    `json:"heads,omitempty"`
	// Cancelled lists invocations to be cancelled, newest last, bounded.
	Cancelled []string `json:"cancelled,omitempty"`
	// Runs counts the runs of the chain so far.
	Runs int `json:"runs,omitempty"`
	// Spent is what all invocations have used, the one in progress too, where a limit of the session counts it.
	Spent Spent `json:"spent,omitzero"`
}

// Spent is what counts against the limits of a session.
type Spent struct {
	ModelCalls int `json:"model_calls,omitempty"`
	Tokens     int `json:"tokens,omitempty"`
	// Worked is the time in which not all of an invocation waited for people.
	Worked time.Duration `json:"worked,omitempty"`
}

// Invocation is the state of one invocation.
type Invocation struct {
	ID         string            `json:"id"`
	ModelCalls int               `json:"model_calls,omitempty"`
	Lists      map[string]string `json:"lists,omitempty"` // toolset → listing; "" when it was denied
	Frame      Frame             `json:"frame,omitzero"`
	Denied     bool              `json:"denied,omitempty"`
	// Tokens and Worked are what the invocation has used, where a limit counts it.
	Tokens int           `json:"tokens,omitempty"`
	Worked time.Duration `json:"worked,omitempty"`
	// Reminders are those of requests that are open.
	Reminders []Reminder `json:"reminders,omitempty"`
	// Cancelled lists calls to be cancelled, newest last, bounded.
	Cancelled []string `json:"cancelled,omitempty"`
}

// Reminder is where the reminders of one request stand.
type Reminder struct {
	Request string `json:"request"`
	// Next is when the next one is due.
	Next time.Time `json:"next"`
	// Sent counts those that were sent.
	Sent int `json:"sent,omitempty"`
}

// Frame is where an agent stands. Frames form a tree from the root to the agents that run.
type Frame struct {
	Iteration int    `json:"iteration,omitempty"`
	Child     int    `json:"child,omitempty"`
	Sub       *Frame `json:"sub,omitempty"`
	// Branches are the children of a ParallelAgent that has begun.
	Branches []Branch `json:"branches,omitempty"`
	// Calls are those of a model's answer that is being worked on.
	Calls []OpenCall `json:"calls,omitempty"`
	// Agent runs in place of the one whose frame this is, after a transfer; empty before one.
	Agent string `json:"agent,omitempty"`
	// Begun says that the agent's callbacks before it have run.
	Begun bool `json:"begun,omitempty"`
	// After lists the agents whose callbacks after them are due, the innermost last.
	After []string `json:"after,omitempty"`
	// Escalate says that something has asked the enclosing loop to stop, once the frame is done.
	Escalate bool `json:"escalate,omitempty"`
	// Wake is when a custom agent that sleeps goes on.
	Wake time.Time `json:"wake,omitzero"`
	// Journal holds the steps that a custom agent has finished. Where it is too long to be carried, Kept names it.
	Journal []Step `json:"journal,omitempty"`
	Kept    string `json:"kept,omitempty"`
}

// Step is one finished step of a custom agent.
type Step struct {
	// Op says what the step was, so that another is noticed.
	Op     string          `json:"op"`
	Result json.RawMessage `json:"result,omitempty"`
	// Loop is the iteration of a loop that goes on, from 1; 0 for what is no loop, or is over.
	Loop int `json:"loop,omitempty"`
}

// Branch is one child of a ParallelAgent.
type Branch struct {
	Frame    Frame    `json:"frame,omitzero"`
	Heads    []string `json:"heads,omitempty"`
	Done     bool     `json:"done,omitempty"`
	Escalate bool     `json:"escalate,omitempty"`
}

// OpenCall is one call of a model's answer on its way.
type OpenCall struct {
	Call
	// Event is the response; empty while the call goes on.
	Event    string `json:"event,omitempty"`
	Escalate bool   `json:"escalate,omitempty"`
	Final    bool   `json:"final,omitempty"`
	// Asked is what the call waits for, if it does.
	Asked
	// Logins and Inputs count what was asked for so far.
	Logins int `json:"logins,omitempty"`
	Inputs int `json:"inputs,omitempty"`
	// Sub is where the agent behind an AgentTool stands, Heads what it has said last.
	Sub   *Frame   `json:"sub,omitempty"`
	Heads []string `json:"heads,omitempty"`
}
