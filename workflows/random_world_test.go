package workflows_test

import (
	"fmt"
	"slices"
	"sync"

	"tarry/wire"
)

// record is what was said in a world, and what came to be that must not.
type record struct {
	mu       sync.Mutex
	parents  map[string][]string
	calls    map[string]madeCall
	order    []string          // of calls
	answers  map[string]string // by call
	problems []string
}

type madeCall struct{ event, agent, scope string }

func newRecord() *record {
	return &record{parents: map[string][]string{}, calls: map[string]madeCall{}, answers: map[string]string{}}
}

func (r *record) wrong(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// said notes an event.
func (r *record) said(event string, parents []string) {
	if r == nil || event == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(event, parents)
}

func (r *record) add(event string, parents []string) {
	for _, p := range parents {
		if _, ok := r.parents[p]; !ok {
			r.wrong("%s follows %s, which nobody said", event, p)
		}
	}
	r.parents[event] = slices.Clone(parents)
}

// called notes an event that makes calls; those with an answer have it at once.
func (r *record) called(event, agent, scope string, parents []string, calls ...wire.Call) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(event, parents)
	for _, c := range calls {
		r.calls[c.ID] = madeCall{event, agent, scope}
		r.order = append(r.order, c.ID)
		if c.Answer != "" {
			r.add(c.Answer, []string{event})
			r.answers[c.ID] = c.Answer
		}
	}
}

// runs notes that a call is run.
func (r *record) runs(call string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[call] != "" {
		r.wrong("call %s is run again", call)
	}
}

// answered notes the response to a call.
func (r *record) answered(call, event string, parents []string) {
	if r == nil || event == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[call] != "" && r.answers[call] != event {
		r.wrong("call %s has two answers", call)
	}
	if parents == nil {
		parents = []string{r.calls[call].event}
	}
	r.add(event, parents)
	r.answers[call] = event
}

func (r *record) answerOf(call string) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[call]
}

func (r *record) view(heads []string) map[string]bool {
	seen := map[string]bool{}
	for stack := slices.Clone(heads); len(stack) > 0; {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen[id] {
			seen[id] = true
			stack = append(stack, r.parents[id]...)
		}
	}
	return seen
}

// reads checks invariant I9 of what a model is given.
func (r *record) reads(in wire.ModelInput) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.view(in.Heads)
	for id, c := range r.calls {
		answer := r.answers[id]
		switch made := view[c.event]; {
		case c.agent != in.Agent || c.scope != in.Scope:
		case made && (answer == "" || !view[answer]):
			r.wrong("model of %s sees call %s without its response", in.Agent, id)
		case !made && view[answer]:
			r.wrong("model of %s sees the response to call %s alone", in.Agent, id)
		}
	}
}

// missing lists what was said and is not in a view.
func (r *record) missing(heads []string) (out []string) {
	view := r.view(heads)
	for id := range r.parents {
		if !view[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (r *record) callIDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}
