package invariants

import "time"

// Log is what runs have left: the rows of a database, and what models were asked.
type Log struct {
	Sessions    []Session
	Events      []Event // in the order of arrival
	Calls       []Call
	Requests    []Request
	Invocations []Invocation
	Asked       []ModelRequest // in the order of the journal
	// Trees are the root agents of definitions, by hash.
	Trees map[string]*Agent
}

// Session is where one session stands.
type Session struct {
	Workflow, Definition string
	// Tips are the events that lead to where it stands.
	Tips []string
}

// Event is one entry of a log.
type Event struct {
	Workflow, Invocation, ID, Kind, Author, Branch string
	Parents                                        []string
	Calls, Responses                               []string // ids of the parts, in order
	Created                                        time.Time
}

// Call is a call that runs, ran or waits.
type Call struct {
	Workflow, Invocation, ID, Agent, Answer, Asking string
}

// Request is a question to a person; Ended is zero while it is open, Call empty where a toolset asked.
type Request struct {
	Workflow, Invocation, ID, Agent, Call, Event string
	Ended                                        time.Time
}

// Invocation is one run of the agents; Ended is zero while it goes on.
type Invocation struct {
	Workflow, ID string
	Ended        time.Time
}

// ModelRequest is what one model was asked.
type ModelRequest struct {
	Time                      time.Time
	Agent, Invocation, Digest string
	Contents                  []Content
}

// Content is one message of a conversation: the ids of its calls and responses, in order.
type Content struct {
	Role             string
	Calls, Responses []string
}

// Agent is a node of a definition: its children, and the agents that serve it as tools.
type Agent struct {
	Name, Kind      string
	Children, Tools []*Agent
}

// Violation is one thing that must not be.
type Violation struct {
	// Rule is the invariant: "I6", "I8" or "I9".
	Rule string
	Text string
}

func (v Violation) String() string { return v.Rule + ": " + v.Text }

// Check returns everything that must not be.
func Check(l Log) []Violation {
	out := l.pairs()
	parts := l.parts()
	for _, s := range l.Sessions {
		part := parts[s.Workflow]
		view := part.view(s)
		out = append(out, part.answers(s, view)...)
		out = append(out, part.turns(view)...)
		out = append(out, part.waits(s, view)...)
	}
	return append(out, l.repeats()...)
}

// parts are what belongs to each workflow.
func (l Log) parts() map[string]*Log {
	out := map[string]*Log{}
	of := func(workflow string) *Log {
		if out[workflow] == nil {
			out[workflow] = &Log{Trees: l.Trees}
		}
		return out[workflow]
	}
	for _, s := range l.Sessions {
		of(s.Workflow).Sessions = []Session{s}
	}
	owner := map[string]string{} // of an invocation
	for _, e := range l.Events {
		owner[e.Invocation] = e.Workflow
		of(e.Workflow).Events = append(of(e.Workflow).Events, e)
	}
	for _, c := range l.Calls {
		of(c.Workflow).Calls = append(of(c.Workflow).Calls, c)
	}
	for _, r := range l.Requests {
		owner[r.Invocation] = r.Workflow
		of(r.Workflow).Requests = append(of(r.Workflow).Requests, r)
	}
	for _, i := range l.Invocations {
		owner[i.ID] = i.Workflow
		of(i.Workflow).Invocations = append(of(i.Workflow).Invocations, i)
	}
	for _, r := range l.Asked {
		if workflow, known := owner[r.Invocation]; known {
			of(workflow).Asked = append(of(workflow).Asked, r)
		}
	}
	return out
}

// view is what leads to where a session stands, in the order of arrival.
func (l Log) view(s Session) (out []Event) {
	byID := map[string]Event{}
	for _, e := range l.Events {
		if e.Workflow == s.Workflow {
			byID[e.ID] = e
		}
	}
	seen := map[string]bool{}
	for todo := append([]string(nil), s.Tips...); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[id] {
			seen[id] = true
			todo = append(todo, byID[id].Parents...)
		}
	}
	for _, e := range l.Events {
		if e.Workflow == s.Workflow && seen[e.ID] {
			out = append(out, e)
		}
	}
	return out
}
