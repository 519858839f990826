package replay

import (
	"errors"
	"fmt"
	"strings"
)

// ErrMismatch says that today's code would have decided otherwise than the history shows. Every [DifferenceError] is one.
var ErrMismatch = errors.New("replay: history does not fit the code")

// ErrHistory says that there is no history of a Tarry session: nothing, no JSON, another workflow's.
var ErrHistory = errors.New("replay: not a session's history")

// ErrAgents says that a history cannot be checked, since its session has custom agents that the [Replayer] lacks.
var ErrAgents = errors.New("replay: custom agents are not registered")

// DifferenceError is the first difference between a history and the code, in words.
type DifferenceError struct {
	// Event is the id of the event of the history that the code does not lead to, or before which it would do more; 0 where
	// the history has nothing more, or the event is not known.
	Event int64
	// Then is what the run did, such as "called tool mcp/list_tickets"; empty where it did nothing and the code would.
	Then string
	// Now is what the code would do in its place, such as "call the model of agent planner"; empty: nothing.
	Now string
	// Fields are the fields of an activity's input that differ, where it is only the input.
	Fields []string
	// Agreed counts the activities, local ones included, that agree before.
	Agreed int
	// Reason is what is likely behind it, and what mends it.
	Reason string
	// Cause is what the SDK's replayer says; nil where it notices nothing.
	Cause error

	agent string // of the history's step
}

// Error says all of it in one line.
func (e *DifferenceError) Error() string {
	var b strings.Builder
	switch {
	case e.Then == "" && e.Now == "":
		b.WriteString("the code does not lead to it")
	case e.Then == "" && e.Event == 0:
		fmt.Fprintf(&b, "at its end: the run did nothing more; the code would also %s", e.Now)
	case e.Then == "":
		fmt.Fprintf(&b, "before event %d: the run did nothing more; the code would also %s", e.Event, e.Now)
	case e.Now == "":
		fmt.Fprintf(&b, "event %d: the run %s; the code would not", e.Event, e.Then)
	default:
		fmt.Fprintf(&b, "event %d: the run %s; the code would %s", e.Event, e.Then, e.Now)
	}
	switch e.Agreed {
	case 0:
		b.WriteString(". No activity agrees before")
	case 1:
		b.WriteString(". The first activity agrees")
	default:
		fmt.Fprintf(&b, ". The first %d activities agree", e.Agreed)
	}
	if e.Reason != "" {
		b.WriteString(". " + e.Reason)
	}
	return b.String()
}

// Is makes a difference an [ErrMismatch].
func (e *DifferenceError) Is(target error) bool { return target == ErrMismatch }

// Unwrap returns what the SDK's replayer says.
func (e *DifferenceError) Unwrap() error { return e.Cause }
