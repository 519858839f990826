package auth

import (
	"net/url"
	"strings"
	"time"

	"tarry/agent"
)

// Status of a request.
type Status string

// The states of a request; see the diagram in the package comment.
const (
	StatusPending    Status = "pending"
	StatusExchanging Status = "exchanging"
	StatusGranted    Status = "granted"
	StatusDenied     Status = "denied"
	StatusExpired    Status = "expired"
	StatusCancelled  Status = "cancelled"
)

// Open says whether the request still waits for its person.
func (s Status) Open() bool { return s == StatusPending || s == StatusExchanging }

// Request is one question to one person.
type Request struct {
	// ID is the id of the call of ADK's that asks (adk_request_credential, adk_request_confirmation, adk_request_input); that of
	// the tool call itself where its result is waited for.
	ID         string
	Owner      agent.Owner
	Session    string
	WorkflowID string
	Invocation string
	Agent      string
	// Call is the tool call that asks; empty when a toolset asks.
	Call   string
	Need   Need
	Status Status
	// Correlator is ADK's state: public, and never accepted at the callback. Requests that share a link share it.
	Correlator string
	// Leader is the request whose link this one shares; empty, or its own id, when the link is its own.
	Leader string
	// Deadline is zero when there is none.
	Deadline time.Time
	Created  time.Time
	Ended    time.Time
	// Reminders counts how often the person was reminded, Reminded is when last; zero for never.
	Reminders int
	Reminded  time.Time
}

// Link is the address at which the asked person answers the request, good while it is open, also when the request that it
// is named after has ended. publicURL is the configured one, never a Host header. The query is there so that clients of ADK, which append "&redirect_uri=…", make a valid URL.
func (r Request) Link(publicURL string) string {
	id := r.Leader
	if id == "" {
		id = r.ID
	}
	return strings.TrimRight(publicURL, "/") + "/connect?" + url.Values{"request": {id}, "state": {r.Correlator}}.Encode()
}

// Asked is what came of opening a request.
type Asked struct {
	// Request is the open request: the new one, or an earlier one of the same session and slot that covers the need.
	Request Request
	// Event is the id of the event that asks.
	Event string
	// Granted says that the credential arrived meanwhile: nobody is asked, the call is tried again.
	Granted bool
	// Denied says that the person refused the same login in this invocation: nobody is asked again.
	Denied bool
	// Full says that too many questions wait for this person in this app: nobody is asked, and nothing was stored.
	Full bool
	// Often says that the toolset asked [MaxAsked] times in this invocation and was granted: its server takes no credential, nobody is
	// asked, and nothing was stored.
	Often bool
}

// PageQuery selects a page of a list, newest first.
type PageQuery struct {
	// After is where an earlier page ended; empty: the first page.
	After string
	// Open leaves out what has ended.
	Open  bool
	Limit int
}

// MaxAsked is how often a toolset may ask for a credential in one invocation: the run waits for no further answer.
const MaxAsked = 3
