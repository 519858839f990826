package tarrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tarry/auth"
)

// Kind says what a run waits for; the names are those of Tarry's API.
type Kind string

// The kinds, and what ends a wait of each.
const (
	// KindLogin is a login that a tool needs: [Run.Grant], [Run.Deny].
	KindLogin Kind = "login"
	// KindConfirmation is a person's approval of a call: [Run.Approve], [Run.Reject].
	KindConfirmation Kind = "confirmation"
	// KindQuestion is data that a tool asks a person for: [Run.Reply], [Run.Decline].
	KindQuestion Kind = "question"
	// KindResult is the result of a long-running call: [Run.Complete], [Run.Decline], and [Run.Interim] besides.
	KindResult Kind = "result"
	// KindInput is what the server of a tool wants of a person (MCP's elicitation): [Run.Fill], [Run.Decline].
	KindInput Kind = "input"
)

func kindOf(n auth.Need) Kind {
	if n.Login() {
		return KindLogin
	}
	return Kind(n.Type) // a request's types are named as the API's kinds are
}

// Wait is one thing that a run waits for.
type Wait struct {
	Kind Kind
	// Request is the id by which methods choose among several; that of the call where its result is waited for.
	Request string
	// Agent is the agent that waits.
	Agent         string
	Tool, Toolset string
	// Deadline is zero where there is none. Reminders counts those that were sent.
	Deadline  time.Time
	Reminders int

	// Key and Scopes are a login's.
	Key    string
	Scopes []string
	// Args are those of the call that is to be approved, or whose result is waited for: exactly the JSON that the tool gets.
	Args json.RawMessage
	// Hint says to the person why a call must be approved.
	Hint string
	// Message is a question's text, or that of a server; Schema is the JSON Schema of the answer, empty where any will do.
	Message string
	Schema  json.RawMessage
	// Payload is what a question shows besides, or what an approval offers to be filled in.
	Payload json.RawMessage
}

// String names the wait as messages of failed tests do.
func (w Wait) String() string {
	of := w.Tool
	if of == "" {
		of = w.Toolset
	}
	if w.Kind == KindLogin {
		return fmt.Sprintf("login %s of %s", w.Key, of)
	}
	return fmt.Sprintf("%s of %s (request %s)", w.Kind, of, w.Request)
}

// named says whether a test may mean this wait by a name.
func (w Wait) named(name string) bool {
	return name == w.Request || name == w.Tool || name == w.Tool[strings.LastIndex(w.Tool, ".")+1:] || w.Kind == KindLogin && name == w.Key
}

// Waiting lists what the run waits for, in the order in which it was asked; none once it has ended.
func (r *Run) Waiting() []Wait {
	r.t.Helper()
	if r.ended {
		return nil
	}
	var out []Wait
	for _, q := range r.open() {
		w, err := r.describe(q)
		if err != nil {
			r.t.Fatalf("tarrytest: read request %s: %v", q.ID, err)
		}
		out = append(out, w)
	}
	return out
}

// open are the requests that the run waits for.
func (r *Run) open() []auth.Request {
	r.t.Helper()
	const most = 1000
	all, err := r.store.Requests(context.Background(), r.row.Owner, true, most)
	if err != nil {
		r.t.Fatalf("tarrytest: list requests: %v", err)
	}
	slices.Reverse(all) // the store has the newest first
	return all
}

func (r *Run) describe(q auth.Request) (Wait, error) {
	w := Wait{
		Kind: kindOf(q.Need), Request: q.ID, Agent: q.Agent, Tool: q.Need.Tool, Toolset: q.Need.Toolset, Deadline: q.Deadline, Reminders: q.Reminders,
	}
	switch w.Kind {
	case KindLogin:
		w.Key, w.Scopes = q.Need.Key, q.Need.Scopes
	case KindConfirmation:
		c, err := r.inputs.Confirmation(q)
		w.Hint, w.Args, w.Payload = c.Hint, json.RawMessage(c.Args), json.RawMessage(c.Payload)
		return w, err //nolint:wrapcheck // the caller does
	case KindQuestion:
		p, err := r.inputs.Prompt(q)
		w.Message, w.Schema, w.Payload = p.Message, p.Schema, p.Payload
		return w, err //nolint:wrapcheck // the caller does
	case KindResult:
		call, err := r.store.Call(context.Background(), r.row, q.Call)
		w.Args = call.Args
		return w, err //nolint:wrapcheck // the caller does
	case KindInput:
		asked, err := r.inputs.Question(q)
		for _, in := range asked.Inputs {
			w.Message, w.Schema = in.Message, in.Schema
		}
		return w, err //nolint:wrapcheck // the caller does
	}
	return w, nil
}

// choose finds the waits of some kinds that are named by request or by tool; without a name, the one that there is. It fails
// the test unless each name is that of one wait.
func (r *Run) choose(what string, names []string, kinds ...Kind) []Wait {
	r.t.Helper()
	r.mustWait(what)
	all := r.Waiting()
	find := func(name string) Wait {
		r.t.Helper()
		var found []Wait
		for _, w := range all {
			if slices.Contains(kinds, w.Kind) && (name == "" || w.named(name)) {
				found = append(found, w)
			}
		}
		switch of := strings.TrimSpace(what + " " + name); len(found) {
		case 1:
			return found[0]
		case 0:
			r.t.Fatalf("tarrytest: %s: there is no wait of that kind and name; the run waits for: %v", of, all)
		default:
			r.t.Fatalf("tarrytest: %s: that may be any of %v; name one by its request", of, found)
		}
		return Wait{}
	}
	if len(names) == 0 {
		return []Wait{find("")}
	}
	var out []Wait
	for _, name := range names {
		out = append(out, find(name))
	}
	return out
}

// Expire lets the clock run to the deadline of what is waited for under a name: the key of a login, a tool, or a request's id.
// Reminders, and deadlines that come before, happen as they come due. Fails the test if nothing is waited for under that name,
// or without a deadline.
func (r *Run) Expire(name string) {
	r.t.Helper()
	r.mustWait("expire " + name)
	all := r.Waiting()
	due := slices.DeleteFunc(slices.Clone(all), func(w Wait) bool { return !w.named(name) })
	if len(due) == 0 {
		r.t.Fatalf("tarrytest: expire %s: there is no wait of that name; the run waits for: %v", name, all)
	}
	for _, w := range due {
		if w.Deadline.IsZero() {
			r.t.Fatalf("tarrytest: expire %s: the %s has no deadline; set deadline on agent %s", name, w, w.Agent)
		}
	}
	waits := func(q auth.Request) bool {
		return slices.ContainsFunc(due, func(w Wait) bool { return w.Request == q.ID })
	}
	for !r.ended && slices.ContainsFunc(r.open(), waits) {
		r.goOn()
	}
}
