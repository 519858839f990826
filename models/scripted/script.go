package scripted

import (
	"fmt"
	"time"
)

// AnyAgent in [Agent] stands for every agent that has no entry of its own.
const AnyAgent = "*"

// Script says what each agent's model answers. A script in use must not be changed.
type Script struct {
	// Name stands in errors and as model version; [Load] sets it to the file's name.
	Name   string
	Agents []Agent
}

// Agent holds the steps of one agent.
type Agent struct {
	// Agent is the name in models.Request.Agent, or [AnyAgent].
	Agent string
	Steps []Step
}

// Step is one answer: a text, calls, or both; or an error.
type Step struct {
	// ID names the step in the journal; its position in the list, from 1, if empty.
	ID string
	// When makes the step a rule; nil makes it the answer of its turn. See the package comment.
	When *When
	// Text and Thought may hold placeholders.
	Text    string
	Thought string
	Calls   []Call
	// Usage is nil where none is to be reported.
	Usage *Usage
	// Delay passes before the answer, and is cut short by the context.
	Delay time.Duration
	// Pace passes between the words of an answer that is streamed, and is cut short like Delay.
	Pace time.Duration
	// Error is given in place of an answer. As nothing is remembered, a retry meets it again; a model that fails once is
	// a [Func].
	Error *Failure
}

// When holds the conditions of a rule. Zero fields ask nothing, and a zero When always holds.
type When struct {
	Turn        int
	LastTool    string
	Contains    string
	Instruction string
}

// Call is one function call.
type Call struct {
	// ID is usually empty: the caller of the model gives ids then.
	ID   string
	Name string
	// Args are JSON values whose strings may hold placeholders.
	Args map[string]any
}

// Usage counts tokens.
type Usage struct {
	Prompt, Output, Thoughts int32
}

// Failure is the error of a provider.
type Failure struct {
	// Status is the HTTP status; 0 is a network failure.
	Status     int
	RetryAfter time.Duration
}

// stepID names a step in the journal and to observers.
func (a Agent) stepID(i int) string {
	if id := a.Steps[i].ID; id != "" {
		return a.Agent + "/" + id
	}
	return fmt.Sprintf("%s/%d", a.Agent, i+1)
}

// find returns the entry of an agent, or nil.
func (s Script) find(name string) *Agent {
	var fallback *Agent
	for i := range s.Agents {
		switch s.Agents[i].Agent {
		case name:
			return &s.Agents[i]
		case AnyAgent:
			fallback = &s.Agents[i]
		}
	}
	return fallback
}

// choose returns the index of the step that answers, or -1.
func (a *Agent) choose(v *view) int {
	for i := range a.Steps {
		if w := a.Steps[i].When; w != nil && v.holds(w) {
			return i
		}
	}
	turn := 0
	for i := range a.Steps {
		if a.Steps[i].When != nil {
			continue
		}
		if turn++; turn == v.turn {
			return i
		}
	}
	return -1
}
