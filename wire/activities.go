package wire

import "time"

// TakeInput is the input of [ActivityTake].
type TakeInput struct {
	// Heads are the parents of the message; empty in the first run, whose heads the store knows.
	Heads []string `json:"heads,omitempty"`
	// Announced are the messages that were announced and that nothing was found of, and Original the run that was begun with:
	// a run with another id was reset, and takes them again.
	Announced []string `json:"announced,omitempty"`
	Original  string   `json:"original,omitempty"`
}

// TakeResult is its result.
type TakeResult struct {
	// Inbox is the row that was taken; empty when there was none.
	Inbox      string `json:"inbox,omitempty"`
	Invocation string `json:"invocation,omitempty"`
	Event      string `json:"event,omitempty"`
	// Agent is the one to go on with; empty means the root.
	Agent string `json:"agent,omitempty"`
}

// ListInput is the input of [ActivityListTools].
type ListInput struct {
	Agent   string   `json:"agent"`
	Toolset string   `json:"toolset"`
	Heads   []string `json:"heads"`
	// Answered is the request that was just granted.
	Answered string `json:"answered,omitempty"`
	// Scope is that of a [ModelInput].
	Scope string `json:"scope,omitempty"`
}

// ListResult is its result.
type ListResult struct {
	// List names the stored listing.
	List string `json:"list,omitempty"`
	Asked
	// Failed says that the server could not be listed; the model is told.
	Failed bool `json:"failed,omitempty"`
}

// Asked is the part of a result that says a person is asked.
type Asked struct {
	// Request is the id of the open request; empty when nobody was asked.
	Request string `json:"request,omitempty"`
	// Asking is the event that asks.
	Asking string `json:"asking,omitempty"`
	// Deadline is when the request expires; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Denied says that the same login was refused in this invocation: nobody is asked again.
	Denied bool `json:"denied,omitempty"`
	// Input says that something else is waited for than a login or an approval: what a server wants of the person, the answer
	// to a tool's question, or the result of a long-running call.
	Input bool `json:"input,omitempty"`
	// Confirmation says that a person is to approve the call before it runs.
	Confirmation bool `json:"confirmation,omitempty"`
}

// ModelInput is the input of [ActivityCallModel].
type ModelInput struct {
	Agent string   `json:"agent"`
	Heads []string `json:"heads"`
	Lists []string `json:"lists,omitempty"`
	// Scope is the call that the agent runs behind (AgentTool); empty for the others.
	Scope string `json:"scope,omitempty"`
}

// ModelResult is its result.
type ModelResult struct {
	Event string `json:"event"`
	// Calls are the function calls of the answer, in order. None: the answer is final.
	Calls []Call `json:"calls,omitempty"`
	// Failed says that the event holds an error and the invocation cannot go on.
	Failed bool `json:"failed,omitempty"`
	// Tokens are those that the call has used; 0 where no limit counts them.
	Tokens int `json:"tokens,omitempty"`
}

// Call is one function call.
type Call struct {
	ID string `json:"id"`
	// Tool is the activity type without its prefix; empty when Answer is set.
	Tool string `json:"tool,omitempty"`
	// Answer is the response event of a call that is answered already: a tool that does not exist, bad arguments.
	Answer string `json:"answer,omitempty"`
	// Agent is called in place of a tool (AgentTool).
	Agent string `json:"agent,omitempty"`
	// Transfer is the agent that the answered call hands the conversation to.
	Transfer string `json:"transfer,omitempty"`
}

// ToolInput is the input of a tool activity.
type ToolInput struct {
	Call string `json:"call"`
	// Answered is the request that was just granted.
	Answered string `json:"answered,omitempty"`
}

// ToolResult is its result.
type ToolResult struct {
	// Event is the function response; empty while a person is asked.
	Event string `json:"event,omitempty"`
	Asked
	Escalate bool `json:"escalate,omitempty"`
	// Final says that no model call follows (ADK's skip_summarization).
	Final bool `json:"final,omitempty"`
	// Toolset was listed by the call, and List names the listing: its tools are there from the next model call on.
	Toolset string `json:"toolset,omitempty"`
	List    string `json:"list,omitempty"`
}

// CloseInput is the input of [ActivityClose].
type CloseInput struct {
	Request string `json:"request"`
}

// CloseResult is its result: "granted" when the login came first.
type CloseResult struct {
	Outcome Outcome `json:"outcome"`
}

// Reasons why a call is answered without having run to its end.
const (
	ReasonDenied  = "denied"
	ReasonExpired = "expired"
	ReasonFailed  = "failed"
	ReasonRefused = "refused" // the server goes on refusing fresh credentials
	// ReasonCancelled: by the person; the request is closed too, unless another call waits for it.
	ReasonCancelled = "cancelled"
)

// SettleInput is the input of [ActivitySettle].
type SettleInput struct {
	// Call is empty when a toolset asked.
	Call    string `json:"call,omitempty"`
	Request string `json:"request,omitempty"`
	Reason  string `json:"reason"`
}

// SettleResult is its result.
type SettleResult struct {
	Event string `json:"event,omitempty"`
	// Closed says that the request of a cancelled call was closed with it.
	Closed bool `json:"closed,omitempty"`
}

// ReturnInput is the input of [ActivityReturn].
type ReturnInput struct {
	Call string `json:"call"`
	// Heads are what the agent said last.
	Heads []string `json:"heads"`
}

// ReturnResult is its result.
type ReturnResult struct {
	Event string `json:"event"`
	// Final says that no model call of the caller follows (ADK's skip_summarization).
	Final bool `json:"final,omitempty"`
}

// GuardInput is the input of [ActivityGuard].
type GuardInput struct {
	Call  string   `json:"call"`
	Heads []string `json:"heads"`
}

// GuardResult is its result.
type GuardResult struct {
	// Event answers the call, in the agent's place; empty when the agent is to run.
	Event string `json:"event,omitempty"`
	// Set is the event of what the callbacks have set meanwhile; empty for nothing.
	Set string `json:"set,omitempty"`
}

// CallbackInput is the input of [ActivityCallback].
type CallbackInput struct {
	Agent string `json:"agent"`
	// After says that the agent has run; otherwise it is to begin.
	After bool     `json:"after,omitempty"`
	Heads []string `json:"heads"`
	Scope string   `json:"scope,omitempty"`
}

// CallbackResult is its result.
type CallbackResult struct {
	// Event is what the callbacks said or set; empty when they did neither.
	Event string `json:"event,omitempty"`
	// Said says that they have answered in the agent's place.
	Said bool `json:"said,omitempty"`
	// Failed says that the event holds an error and the invocation cannot go on.
	Failed bool `json:"failed,omitempty"`
}

// MirrorInput is the input of [ActivityMirror].
type MirrorInput struct {
	// Continued says that this run goes on where the one before it was continued as new; a reset does not say so.
	Continued bool  `json:"continued,omitempty"`
	State     State `json:"state"`
}

// RemindInput is the input of [ActivityRemind].
type RemindInput struct {
	Request string `json:"request"`
	// Number counts the reminders of the request, from 1.
	Number int `json:"number"`
}

// QueuedInput is the input of [ActivityQueued].
type QueuedInput struct {
	Invocation string `json:"invocation"`
}

// QueuedResult is its result.
type QueuedResult struct {
	// Message says that a message of the session is queued.
	Message bool `json:"message,omitempty"`
	// Answer says that an answer to the invocation's requests is on its way to the run.
	Answer bool `json:"answer,omitempty"`
}

// Endings of an invocation.
const (
	EndDone      = "done"
	EndFailed    = "failed"
	EndCancelled = "cancelled"
	EndLimit     = "limit"
	// EndSuperseded: all that was left waited for people, and a new message came.
	EndSuperseded = "superseded"
)

// FinishInput is the input of [ActivityFinish].
type FinishInput struct {
	Invocation string   `json:"invocation"`
	End        string   `json:"end"`
	Heads      []string `json:"heads,omitempty"`
	// Denied says that a login of this invocation was denied or expired.
	Denied bool `json:"denied,omitempty"`
	// Closed says that the session takes no further message.
	Closed bool `json:"closed,omitempty"`
	// Limit is the definition's key of the limit that was hit ("tokens", "session.tokens"), and Most its value, as it is written there.
	Limit string `json:"limit,omitempty"`
	Most  string `json:"most,omitempty"`
	// Expired is the request whose deadline has ended the invocation.
	Expired string `json:"expired,omitempty"`
}

// FinishResult is its result.
type FinishResult struct {
	// Heads replace the given ones when events were appended.
	Heads []string `json:"heads,omitempty"`
}
