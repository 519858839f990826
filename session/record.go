package session

import (
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
)

// Kind of an event; an id that is found again with another kind is an error.
type Kind string

// The kinds.
const (
	KindUser     Kind = "user"     // what a person said
	KindModel    Kind = "model"    // an answer of a model
	KindAgent    Kind = "agent"    // what an agent's own code says: a callback's, a custom agent's
	KindResponse Kind = "response" // the result of a call
	KindRequest  Kind = "request"  // a question to a person
	KindNotice   Kind = "notice"   // how an invocation ended
	KindReminder Kind = "reminder" // that a question is still open; nothing follows it, and no model sees it
	KindInterim  Kind = "interim"  // what is known of a long-running call before its result
	KindPatch    Kind = "patch"    // what a client wrote to the state besides any message
)

func reserved(name string) bool { return name != agent.TransferToAgent && agent.Reserved(name) }

// Record is a stored event.
type Record struct {
	Event
	// Seq is the order of arrival in the store; it grows, with gaps.
	Seq     int64
	Parents []string
	Kind    Kind
	// Body is the event's JSON as it was stored, byte for byte; clients get this.
	Body []byte
	// Repeated says of what [Log.Append] returns that what a model or an agent has said was stored before, by another attempt
	// perhaps, and with other calls.
	Repeated bool
}

// Speaks says whether r is what an agent itself says, by its model or its code, and not the result of a call or a question.
func (r *Record) Speaks() bool { return r.Kind == KindModel || r.Kind == KindAgent }

// NewEvent is an event to append.
type NewEvent struct {
	Event
	Parents []string
	Kind    Kind
}

// Ancestors picks from records, sorted by Seq, those that are a head or an ancestor of one, and returns the ids of parents that
// are not among the records.
func Ancestors(byID map[string]*Record, heads []string) (view []*Record, missing []string) {
	view, _, missing = climb(byID, heads, nil)
	return view, missing
}

// climb goes from heads to their ancestors, but not through those that are known. It returns what is not known, sorted by Seq,
// and all that it came by.
func climb(byID map[string]*Record, heads []string, known map[string]bool) (found []*Record, seen map[string]bool, missing []string) {
	seen = map[string]bool{}
	stack := slices.Clone(heads)
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if known[id] {
			continue
		}
		r, ok := byID[id]
		if !ok {
			missing = append(missing, id)
			continue
		}
		found = append(found, r)
		stack = append(stack, r.Parents...)
	}
	sortBySeq(found)
	return found, seen, missing
}

// Interrupted answers a call whose run is gone, as event id.
func Interrupted(call Call, id string) NewEvent {
	message := "The run was ended from outside before the call had an answer."
	if call.MayHaveRun() {
		message += " It is not known whether it took effect."
	}
	return NewEvent{Kind: KindResponse, Parents: []string{call.Last}, Event: Event{
		ID: id, InvocationID: call.Invocation, Author: call.Agent,
		Content: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: call.ID, Name: call.Name[strings.LastIndex(call.Name, ".")+1:], Response: map[string]any{"error": message},
		}}}},
	}}
}

// Interim shows clients what is known of a long-running call before its result, as event id. It is no answer to the call, and
// no model sees it.
func Interim(call Call, id string, parents []string, response map[string]any) NewEvent {
	goesOn := true
	return NewEvent{Kind: KindInterim, Parents: parents, Event: Event{
		ID: id, InvocationID: call.Invocation, Author: call.Agent,
		Content: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: call.ID, Name: call.Name[strings.LastIndex(call.Name, ".")+1:], Response: response, WillContinue: &goesOn,
		}}}},
	}}
}
