package agent

import "time"

// WaitPolicy says what becomes of an agent's waits for people: logins, approvals and whatever else is asked of them. The zero
// value waits without limit and in silence.
type WaitPolicy struct {
	// Deadline is how long a request stays open; 0 means without limit. A request that several agents wait for has the
	// deadline of the one that asked first.
	Deadline time.Duration `json:"deadline,omitempty"`
	// OnDeadline is what happens then; empty means [DeadlineDeny].
	OnDeadline OnDeadline `json:"on_deadline,omitempty"`
	// Remind is the time between two reminders while a request is open, at least a second; 0 means none.
	Remind time.Duration `json:"remind,omitempty"`
}

// OnDeadline is what happens when nobody has answered in time.
type OnDeadline string

// What a deadline may do.
const (
	// DeadlineDeny answers the call; the model is told and decides how to go on.
	DeadlineDeny OnDeadline = "deny"
	// DeadlineFail ends the invocation as failed. What was said is kept.
	DeadlineFail OnDeadline = "fail"
)

// OnMessage is what becomes of a message that comes while an invocation runs.
type OnMessage string

// What a message may do.
const (
	// MessageQueue leaves the message until the invocation has ended.
	MessageQueue OnMessage = "queue"
	// MessageInterrupt ends the invocation as soon as all that is left of it waits for people, and takes the message next.
	MessageInterrupt OnMessage = "interrupt"
)

// Limits bound what runs, over the whole tree. A limit that is hit ends the invocation with an event that says which; what was
// said is kept.
type Limits struct {
	// ModelCalls is the most model calls of one invocation; 0 means [DefaultModelCalls].
	ModelCalls int `json:"model_calls,omitempty"`
	// Tokens is the most tokens of one invocation, by what models say that they used; 0 means no limit. It may be exceeded by one
	// model call for each branch that runs.
	Tokens int `json:"tokens,omitempty"`
	// Duration is the longest that one invocation may run, the time apart in which all of it waits for people; 0 means no limit.
	Duration time.Duration `json:"duration,omitempty"`
	// Session bounds all invocations of a session together. Once it is reached, further messages are answered with the event.
	Session SessionLimits `json:"session,omitzero"`
}

// SessionLimits are those of all invocations of a session; 0 means no limit.
type SessionLimits struct {
	ModelCalls int           `json:"model_calls,omitempty"`
	Tokens     int           `json:"tokens,omitempty"`
	Duration   time.Duration `json:"duration,omitempty"`
}

// CountsTokens says whether anything is limited by tokens.
func (l Limits) CountsTokens() bool { return l.Tokens > 0 || l.Session.Tokens > 0 }

// CountsTime says whether anything is limited by time.
func (l Limits) CountsTime() bool { return l.Duration > 0 || l.Session.Duration > 0 }

// DefaultModelCalls is ADK's max_llm_calls.
const DefaultModelCalls = 500
