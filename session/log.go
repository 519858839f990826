package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tarry/agent"
)

// Errors of a [Log].
var (
	// ErrNotFound: there is no such session, event or call, or it is somebody else's.
	ErrNotFound = errors.New("session: not found")
	// ErrExists: the session id is taken.
	ErrExists = errors.New("session: exists already")
	// ErrConflict: an event id is there with another kind or author.
	ErrConflict = errors.New("session: event id is taken by another event")
	// ErrAnswered: the call that an append answers has another answer already. Nothing was stored; the call names it.
	ErrAnswered = errors.New("session: call is answered by another event")
	// ErrEnded: a model's answer to an invocation that has ended, by an attempt that was cut off and came back too late.
	ErrEnded = errors.New("session: invocation has ended")
	// ErrClosed: the session takes no further message.
	ErrClosed = errors.New("session: closed")
	// ErrRepeated: a message of that id was posted before, and said something else.
	ErrRepeated = errors.New("session: message id is taken by another message")
	// ErrFull: [MaxQueued] messages wait for their turn.
	ErrFull = errors.New("session: too many messages wait")
	// ErrLarge: more than [MaxPatched] of state would have been written besides messages.
	ErrLarge = errors.New("session: too much state")
)

// MaxQueued is how many messages of a session may wait for their turn: a run carries their ids with it.
const MaxQueued = 1000

// MaxPatched bounds what [Log.Patch] writes to one session's own state, in bytes of JSON: lists of sessions show it.
const MaxPatched = 256 << 10

// Session is a row: where a conversation stands. Everything that was said is in its events.
type Session struct {
	Owner      agent.Owner
	ID         string
	WorkflowID string
	// Definition is the hash that the session is pinned to; empty until its first message.
	Definition string
	Mode       string
	// Initial is the state that the session was created with.
	Initial map[string]any
	// Patched is what [Log.Patch] wrote since, of the session's own scope; nil is a key that was deleted.
	Patched map[string]any
	// Status is one of wire's states; empty before the first message.
	Status     string
	Invocation string // the current or last one
	// Streaming says that the client of that invocation reads along while models answer: see [Partials].
	Streaming bool
	Closed    bool
	Created   time.Time
	Updated   time.Time
}

// Invocation is one run of the agent tree, from a message to its end.
type Invocation struct {
	ID      string
	Session string
	// Status is "queued", "running", or one of wire's endings.
	Status  string
	Denied  bool
	Created time.Time
	Ended   time.Time
}

// Append is one atomic addition to a session's log.
type Append struct {
	Owner   agent.Owner
	Session string
	// Run is the Temporal run that appends: a run that another has replaced does not move the session's heads, and the
	// first append of a run that was reset leaves behind what the replaced run said after that point. Empty for what no run
	// appends.
	Run    string
	Events []NewEvent
	// Calls are function calls that the events make and that will run.
	Calls []Call
	// Answers maps call ids to the events that answer them. A call has one answer for good: see [ErrAnswered].
	Answers map[string]string
	// Acted is the request whose outcome this append acts on; its message is done with.
	Acted string
	// Status is set on the session when not empty.
	Status string
	// Whole is the event of which pieces were told: see [Partials]. They are done with.
	Whole string
}

// Call is a function call that runs, ran, or waits.
type Call struct {
	ID         string
	Session    string
	Invocation string
	Event      string // the model's answer that makes it
	Agent      string
	Toolset    string
	Name       string
	Args       json.RawMessage
	// Started says that an attempt began and its result is not known: it ended in a crash, or runs still. See MayHaveRun for
	// calls that are not marked.
	Started bool
	// Idempotent says that the call may be made again when it is not known how an attempt ended.
	Idempotent bool
	// Answer is the event that answers the call; empty while it is open.
	Answer string
	// Asking is the last event that asked a person on the call's behalf.
	Asking string
	// Last is the event that the next one of the call follows: the one that asked, or the one that makes the call where that
	// was another call's, of another agent, for the login that both need.
	Last string
	// Asked counts the requests that were opened for it.
	Asked int
}

// Unmarked says that no mark is kept when an attempt of the call begins: it may be made again however that ended, and nobody
// was asked about it (an approval is for one run). The mark costs a commit of its own.
func (c Call) Unmarked() bool { return c.Idempotent && c.Asking == "" }

// MayHaveRun says that an attempt of an open call may have had an effect.
func (c Call) MayHaveRun() bool { return c.Started || c.Unmarked() }

// Message is what a person or client sends, before it has a place in the log.
type Message struct {
	ID         string
	Invocation string
	Event      Event
	StateDelta map[string]any
	// Streaming asks for pieces of answers while models give them: see [Partials].
	Streaming bool
}

// Log keeps sessions. Every method is atomic and safe for concurrent use by several processes; an Owner that does not
// own what is named gets [ErrNotFound].
type Log interface {
	// Create stores a new session, or returns [ErrExists]. Of the initial state, user: keys go where the user's other
	// sessions see them; app: and temp: keys are dropped, since clients may not write them.
	// The events are its first, and each follows what it names as parents; they must be new.
	Create(ctx context.Context, s Session, events ...NewEvent) error
	Session(ctx context.Context, owner agent.Owner, id string) (Session, error)
	// Sessions lists the owner's sessions, newest first.
	Sessions(ctx context.Context, owner agent.Owner, limit int) ([]Session, error)
	Delete(ctx context.Context, owner agent.Owner, id string) error
	// Post stores a message and the nudge that will announce it. The definition pins a session that has none. Of the
	// event's actions nothing is kept but the state that clients may write. The same message again changes nothing. Errors
	// besides: [ErrRepeated], [ErrClosed], [ErrFull].
	Post(ctx context.Context, owner agent.Owner, id, definition, mode string, m Message) error
	// Patch writes state that clients may write, as an event of the given id and invocation that no message and no run has made.
	// A run that goes on beside it does not see it: it is part of the next invocation's view. A closed session takes it too.
	// Errors besides: [ErrLarge].
	Patch(ctx context.Context, owner agent.Owner, id string, e Event) error
	// Timeline lists the events that lead to where the session stands, with Seq > after.
	Timeline(ctx context.Context, owner agent.Owner, id string, after int64) ([]*Record, error)
	// Standing is Session without the state, which may be large: for those who look often.
	Standing(ctx context.Context, owner agent.Owner, id string) (Session, error)
	// Reread is Timeline for a reader that has read it before: what is in known, by id, is taken from there, since events never
	// change, and only the rest is read.
	Reread(ctx context.Context, owner agent.Owner, id string, known map[string]*Record) ([]*Record, error)
	Invocation(ctx context.Context, owner agent.Owner, id string) (Invocation, error)
	// State is the session's current state, scopes merged.
	State(ctx context.Context, owner agent.Owner, id string) (map[string]any, error)

	// ByWorkflow finds the session of a workflow.
	ByWorkflow(ctx context.Context, workflowID string) (Session, error)
	// Take moves the next message into the log, as event with parents heads (or where the session stands, if none are
	// given), and returns its record and inbox id. A repeat with the same event id returns the same; no message, or a run
	// that another has replaced: nil.
	Take(ctx context.Context, s Session, run, eventID string, heads []string) (*Record, string, error)
	// Retake is Take for a run that was reset and may find that the run before it has taken what was announced to it: it
	// takes the first of those again that do not lead to heads. Their invocation goes on, also if it had ended.
	Retake(ctx context.Context, s Session, run, eventID string, heads, announced []string) (*Record, string, error)
	// Append adds events. An id that exists returns the stored event instead: see [ErrConflict].
	Append(ctx context.Context, a Append) ([]*Record, error)
	// Events returns the events with these ids; nil ids: all of the session.
	Events(ctx context.Context, s Session, ids []string) ([]*Record, error)
	// Scoped returns app: and user: state.
	Scoped(ctx context.Context, owner agent.Owner) (map[string]any, error)
	Call(ctx context.Context, s Session, id string) (Call, error)
	// Start marks that an attempt of a call begins, unless it is one of those that are not marked (see [Call.Unmarked]), and
	// returns the call as it was before.
	Start(ctx context.Context, s Session, callID string) (Call, error)
	// ReleaseCall takes the mark back: the attempt is known to have had no effect.
	ReleaseCall(ctx context.Context, s Session, callID string) error
	// Open lists the calls of an invocation that have no answer and lead to heads or to where the session stands: those that a
	// reset has left behind are nobody's any more.
	Open(ctx context.Context, s Session, invocation string, heads []string) ([]Call, error)
	// Continue says that a run goes on where the one before it ended: what that one said is all part of the session.
	Continue(ctx context.Context, s Session, run string) error
	// SetStatus writes where a run stands.
	SetStatus(ctx context.Context, s Session, run, status string) error
	// Finish ends an invocation and returns where the session stands. Closing cancels the messages that are still queued.
	// A run that another has replaced ends nothing.
	Finish(ctx context.Context, s Session, end Ending) ([]string, error)
}

// Ending of an invocation.
type Ending struct {
	Run        string
	Invocation string
	Status     string
	Denied     bool
	Closed     bool
	// Heads are where the run stands: one that was reset and has said nothing itself leaves behind what was said after them.
	Heads []string
	// Append is added in the same transaction.
	Append Append
}
