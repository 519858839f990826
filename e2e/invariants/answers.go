package invariants

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of events, as the table has them.
const (
	kindModel    = "model"
	kindResponse = "response"
	kindNotice   = "notice"
)

// pairs: in what a model is asked, the message after one with calls has their responses, in order, and no other message has
// any (I9).
func (l Log) pairs() (out []Violation) {
	for i, r := range l.Asked {
		fault := func(format string, args ...any) {
			out = append(out, Violation{"I9", fmt.Sprintf("model request %d, of agent %s in invocation %s: ", i+1, r.Agent, r.Invocation) + fmt.Sprintf(format, args...)})
		}
		var open []string
		for _, c := range r.Contents {
			if !slices.Equal(open, c.Responses) {
				fault("calls [%s] are followed by responses [%s]", strings.Join(open, " "), strings.Join(c.Responses, " "))
			}
			open = c.Calls
		}
		if len(open) > 0 {
			fault("calls [%s] are the last of the conversation", strings.Join(open, " "))
		}
	}
	return out
}

// answers: a call has one response at most, the one that its row names (I6), and one for certain once its invocation has
// ended (I9).
func (l Log) answers(s Session, view []Event) (out []Violation) {
	stored, by := map[string][]string{}, map[string]string{}
	for _, c := range l.Calls {
		if c.Workflow == s.Workflow {
			by[c.ID] = c.Answer
		}
	}
	said := map[string]bool{}
	for _, e := range view {
		for _, id := range e.Responses {
			said[id] = true
			if e.Kind == kindResponse {
				stored[id] = append(stored[id], e.ID)
			}
		}
	}
	ended := map[string]bool{}
	for _, i := range l.Invocations {
		ended[i.ID] = i.Workflow == s.Workflow && !i.Ended.IsZero()
	}
	for _, e := range view {
		if e.Kind != kindModel {
			continue
		}
		for _, id := range e.Calls {
			switch answer, known := by[id]; {
			case len(stored[id]) > 1:
				out = append(out, Violation{"I6", fmt.Sprintf("call %s of %s has several responses: %s", id, e.Author, strings.Join(stored[id], " "))})
			case known && len(stored[id]) == 1 && answer != stored[id][0]:
				out = append(out, Violation{"I6", fmt.Sprintf("call %s of %s is answered by %s, and its row says %q", id, e.Author, stored[id][0], answer)})
			case !said[id] && ended[e.Invocation]:
				out = append(out, Violation{"I9", fmt.Sprintf("call %s of %s has no response, and its invocation %s has ended", id, e.Author, e.Invocation)})
			}
		}
	}
	return out
}

// turns: of two answers of one agent to the same conversation one was produced again (I6).
func (l Log) turns(view []Event) (out []Violation) {
	first := map[string]string{}
	for _, e := range view {
		if e.Kind != kindModel {
			continue
		}
		parents := slices.Sorted(slices.Values(e.Parents))
		key := strings.Join([]string{e.Invocation, e.Author, e.Branch, strings.Join(parents, " ")}, "\n")
		if other, ok := first[key]; ok {
			out = append(out, Violation{"I6", fmt.Sprintf("%s and %s are answers of agent %s after the same events", other, e.ID, e.Author)})
		}
		first[key] = e.ID
	}
	return out
}
