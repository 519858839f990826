package adk

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
)

// maxImported is how many events a session can be created with.
const maxImported = 10_000

// imports are events of elsewhere that a session begins with: what was said there, under ids of our own. They are words and
// nothing more. What they could forge is refused: questions to a person and the answers, approvals, state, calls that wait.
type imports struct {
	events []session.NewEvent
	// invocations maps ids of elsewhere, which could be somebody's here, to ours.
	invocations map[string]string
	// open are calls without a response, by id: who made them and where; answered are those that have one.
	open     map[string]madeCall
	answered map[string]bool
}

type madeCall struct {
	author, branch, name string
	at                   int
}

// decodeEvents reads the events of a create request.
func decodeEvents(raw json.RawMessage) ([]session.NewEvent, error) {
	var all []json.RawMessage
	if err := decode(raw, &all); err != nil {
		return nil, invalid("events is not a list")
	}
	if len(all) > maxImported {
		return nil, invalid("events has %d entries, at most %d are taken", len(all), maxImported)
	}
	in := &imports{invocations: map[string]string{}, open: map[string]madeCall{}, answered: map[string]bool{}}
	for i, raw := range all {
		if err := in.event(raw, i); err != nil {
			return nil, err
		}
	}
	if id, call, ok := in.unanswered(); ok {
		return nil, invalid("events[%d]: call %q of %s has no response among the events; leave it out, or send the response too", call.at, brief(id), brief(call.name))
	}
	return in.events, in.readable()
}

// unanswered is the first call that has no response.
func (in *imports) unanswered() (id string, call madeCall, ok bool) {
	for key, c := range in.open {
		if !ok || c.at < call.at || c.at == call.at && key < id {
			id, call, ok = key, c, true
		}
	}
	return id, call, ok
}

// readable says whether every agent can go on with what was said.
func (in *imports) readable() error {
	view := make([]*session.Record, 0, len(in.events))
	authors := map[string]bool{}
	for i, e := range in.events {
		view = append(view, &session.Record{Event: e.Event, Kind: e.Kind, Seq: int64(i)})
		authors[e.Author] = true
	}
	for author := range authors {
		if _, err := session.Contents(view, session.Reader{Agent: author}); err != nil {
			return invalid("events: calls and responses of %s do not match", brief(author))
		}
	}
	return nil
}

func (in *imports) event(raw json.RawMessage, i int) error {
	fields, err := object(raw)
	if err != nil {
		return invalid("events[%d] is not an object", i)
	}
	var from struct {
		author, invocation, branch, code, message string
		timestamp                                 float64
		partial                                   bool
		longRunning                               []string
	}
	for field, to := range map[string]any{
		"author": &from.author, "invocationId": &from.invocation, "branch": &from.branch, "errorCode": &from.code, "errorMessage": &from.message,
		"timestamp": &from.timestamp, "partial": &from.partial, "longRunningToolIds": &from.longRunning,
	} {
		if err := decode(fields[field], to); err != nil {
			return invalid("events[%d].%s is of the wrong type", i, field)
		}
	}
	switch {
	case agent.CheckID("author", from.author) != nil:
		return invalid("events[%d].author is missing or cannot be a name", i)
	case len(from.longRunning) > 0:
		return invalid("events[%d].longRunningToolIds: what waits elsewhere cannot be waited for here; leave such calls out", i)
	case from.partial:
		return nil // what follows says all of it
	}
	if err := changesNothing(fields["actions"], i); err != nil {
		return err
	}
	if in.invocations[from.invocation] == "" {
		in.invocations[from.invocation] = "i-" + uuid.NewString()
	}
	e := session.NewEvent{Kind: session.KindModel, Event: session.Event{
		ID: uuid.NewString(), InvocationID: in.invocations[from.invocation], Author: from.author, Branch: from.branch, ErrorCode: from.code, ErrorMessage: from.message,
		Timestamp: sometime(from.timestamp),
	}}
	if from.author == agent.UserAuthor {
		e.Kind = session.KindUser
	}
	if err := in.content(&e, fields["content"], i); err != nil {
		return err
	}
	if e.Content == nil && e.ErrorCode == "" && e.ErrorMessage == "" {
		return nil
	}
	if n := len(in.events); n > 0 {
		e.Parents = []string{in.events[n-1].ID}
	}
	in.events = append(in.events, e)
	return nil
}

// sometime is when an event happened elsewhere, or 0, which is now.
func sometime(seconds float64) float64 {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > float64(time.Now().Add(time.Hour).Unix()) {
		return 0
	}
	return seconds
}

// changesNothing refuses actions that do something.
func changesNothing(raw json.RawMessage, i int) error {
	actions, err := object(raw)
	if err != nil {
		return invalid("events[%d].actions is not an object", i)
	}
	for name, value := range actions {
		switch strings.TrimSpace(string(value)) {
		case "", "null", "{}", "[]", "false", `""`:
		default:
			return invalid("events[%d].actions.%s: events of elsewhere change nothing here; put state into the field state of the request", i, brief(name))
		}
	}
	return nil
}

func (in *imports) content(e *session.NewEvent, raw json.RawMessage, i int) error {
	content, err := object(raw)
	if err != nil {
		return invalid("events[%d].content is not an object with role and parts", i)
	}
	var parts []json.RawMessage
	if err := decode(content["parts"], &parts); err != nil {
		return invalid("events[%d].content.parts is not a list", i)
	}
	out := &genai.Content{Role: genai.RoleModel}
	if e.Kind == session.KindUser {
		out.Role = genai.RoleUser
	}
	for n, raw := range parts {
		at := fmt.Sprintf("events[%d].content.parts[%d]", i, n)
		fields, err := object(raw)
		if err != nil {
			return invalid("%s is not an object", at)
		}
		part, err := in.part(e, fields, at, i)
		if err != nil {
			return err
		}
		if part != nil {
			out.Parts = append(out.Parts, part)
		}
	}
	if responds(out) {
		e.Kind, out.Role = session.KindResponse, genai.RoleUser
	}
	if len(out.Parts) > 0 {
		e.Content = out
	}
	return nil
}

func responds(c *genai.Content) bool {
	e := session.Event{Content: c}
	return len(e.Responses()) > 0
}

func (in *imports) part(e *session.NewEvent, fields map[string]json.RawMessage, at string, i int) (*genai.Part, error) {
	switch {
	case present(fields["functionCall"]):
		var call genai.FunctionCall
		if err := decodeFunction(fields["functionCall"], &call.ID, &call.Name, "args", &call.Args); err != nil {
			return nil, invalid("%s.functionCall is not {id, name, args}", at)
		}
		if err := in.calls(e, call, at, i); err != nil {
			return nil, err
		}
		return &genai.Part{FunctionCall: &call}, nil
	case present(fields["functionResponse"]):
		var response genai.FunctionResponse
		if err := decodeFunction(fields["functionResponse"], &response.ID, &response.Name, "response", &response.Response); err != nil {
			return nil, invalid("%s.functionResponse is not {id, name, response}", at)
		}
		if err := in.responds(e, response, at); err != nil {
			return nil, err
		}
		return &genai.Part{FunctionResponse: &response}, nil
	}
	part, err := decodePart(fields)
	if err != nil {
		return nil, invalid("%s is not text, inlineData, fileData, functionCall or functionResponse as ADK has them", at)
	}
	if part != nil {
		if err := decode(fields["thought"], &part.Thought); err != nil {
			return nil, invalid("%s.thought is neither true nor false", at)
		}
	}
	return part, nil
}

func decodeFunction(raw json.RawMessage, id, name *string, field string, value *map[string]any) error {
	fields, err := object(raw)
	if err != nil {
		return err
	}
	for field, to := range map[string]any{"id": id, "name": name, field: value} {
		if err := decode(fields[field], to); err != nil {
			return err
		}
	}
	return nil
}

func (in *imports) calls(e *session.NewEvent, call genai.FunctionCall, at string, i int) error {
	switch _, open := in.open[call.ID]; {
	case e.Kind == session.KindUser:
		return invalid("%s.functionCall: only agents call functions", at)
	case call.ID == "" || call.Name == "":
		return invalid("%s.functionCall: id and name must be there", at)
	case agent.Reserved(call.Name):
		return invalid("%s.functionCall: the name %q is reserved: what was asked or handed over elsewhere does not count here; leave such calls out", at, brief(call.Name))
	case open || in.answered[call.ID]:
		return invalid("%s.functionCall: the id %q is another call's", at, brief(call.ID))
	}
	in.open[call.ID] = madeCall{author: e.Author, branch: e.Branch, name: call.Name, at: i}
	return nil
}

func (in *imports) responds(e *session.NewEvent, response genai.FunctionResponse, at string) error {
	call, open := in.open[response.ID]
	switch {
	case agent.Reserved(response.Name):
		return invalid("%s.functionResponse: the name %q is reserved: what was answered elsewhere does not count here; leave it out", at, brief(response.Name))
	case !open:
		return invalid("%s.functionResponse: no call with the id %q comes before it and has no response", at, brief(response.ID))
	case call.author != e.Author || call.branch != e.Branch || call.name != response.Name:
		return invalid("%s.functionResponse: author, branch and name must be those of its call", at)
	}
	delete(in.open, response.ID)
	in.answered[response.ID] = true
	return nil
}
