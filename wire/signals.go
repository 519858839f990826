package wire

// Outcome of a request.
type Outcome string

// The outcomes.
const (
	OutcomeGranted   Outcome = "granted"
	OutcomeDenied    Outcome = "denied"
	OutcomeExpired   Outcome = "expired"
	OutcomeAnswered  Outcome = "answered"
	OutcomeCancelled Outcome = "cancelled"
)

// Message is the payload of [SignalMessage].
type Message struct {
	Inbox string `json:"inbox"`
}

// Resolved is the payload of [SignalResolved]. The store's row is the authority; this is its announcement.
type Resolved struct {
	Request string  `json:"request"`
	Outcome Outcome `json:"outcome"`
}

// Cancel is the payload of [SignalCancel].
type Cancel struct {
	// Invocation names the one to cancel; a stale id is ignored. Empty means the session: whatever runs, and no more.
	Invocation string `json:"invocation,omitempty"`
	// Call names the one tool call to cancel; a stale id is ignored. Invocation is the same id then: a worker that knows no
	// Call takes it for a stale one, and does not cancel the session.
	Call string `json:"call,omitempty"`
}

// State of a run.
type State string

// The states; they are also the values of [AttributeStatus].
const (
	StateRunning           State = "running"
	StateWaitingCredential State = "waiting_credential"
	// StateWaitingInput: servers want something of the person, tools ask or their results are waited for, and no login is.
	StateWaitingInput State = "waiting_input"
	// StateWaitingConfirmation: calls wait for a person's approval, and no login is waited for.
	StateWaitingConfirmation State = "waiting_confirmation"
	StateIdle                State = "idle"
)

// Status answers [QueryStatus].
type Status struct {
	State      State    `json:"state"`
	Invocation string   `json:"invocation,omitempty"`
	Requests   []string `json:"requests,omitempty"`
	ModelCalls int      `json:"model_calls,omitempty"`
	Iteration  int      `json:"iteration,omitempty"` // of the outermost LoopAgent, from 1
	Agent      string   `json:"agent,omitempty"`
	Runs       int      `json:"runs,omitempty"`
}
