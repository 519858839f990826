package invariants

import (
	"fmt"
	"time"
)

// wait is a call, or a toolset, that waits for a person.
type wait struct {
	agent, invocation, what string
	from, to                time.Time // to is zero while it waits
}

func (w wait) holds(t time.Time) bool { return t.After(w.from) && (w.to.IsZero() || t.Before(w.to)) }

// waits: between a question and its end no model is asked for, and nothing is said by, whoever depends on it (I8).
func (l Log) waits(s Session, view []Event) (out []Violation) {
	root := l.Trees[s.Definition]
	if root == nil {
		return nil
	}
	for _, w := range l.waiting(s, view) {
		for _, r := range l.Asked {
			if r.Invocation == w.invocation && w.holds(r.Time) && depends(root, r.Agent, w.agent) {
				out = append(out, Violation{"I8", fmt.Sprintf("the model of agent %s was asked while %s of agent %s waited", r.Agent, w.what, w.agent)})
			}
		}
		for _, e := range view {
			if e.Kind == kindModel && e.Invocation == w.invocation && w.holds(e.Created) && depends(root, e.Author, w.agent) {
				out = append(out, Violation{"I8", fmt.Sprintf("agent %s said something while %s of agent %s waited", e.Author, w.what, w.agent)})
			}
		}
	}
	return out
}

func (l Log) waiting(s Session, view []Event) (out []wait) {
	created := map[string]time.Time{}
	for _, e := range view {
		created[e.ID] = e.Created
	}
	for _, c := range l.Calls {
		if from, ok := created[c.Asking]; ok && c.Workflow == s.Workflow {
			out = append(out, wait{c.Agent, c.Invocation, "call " + c.ID, from, created[c.Answer]})
		}
	}
	for _, r := range l.Requests {
		if from, ok := created[r.Event]; ok && r.Workflow == s.Workflow && r.Call == "" {
			out = append(out, wait{r.Agent, r.Invocation, "request " + r.ID, from, r.Ended})
		}
	}
	return out
}

// edge is a step down a tree of agents.
type edge struct {
	from *Agent
	to   string
	tool bool // as a tool
}

// depends says whether agent x may do nothing while agent w waits. Whoever runs beside w is free: in another branch of a
// ParallelAgent, or behind another call of one answer. What a custom agent runs side by side cannot be known.
func depends(root *Agent, x, w string) bool {
	px, pw := paths(root, x), paths(root, w)
	if len(px) != 1 || len(pw) != 1 {
		return false
	}
	a, b := px[0], pw[0]
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	switch {
	case n == len(a): // x is w, or above it
		return !asTool(a)
	case n == len(b): // x is below w
		return !a[n].tool
	}
	kind := a[n].from.Kind
	return kind != "ParallelAgent" && kind != "CustomAgent" && (!a[n].tool || !b[n].tool)
}

func asTool(path []edge) bool {
	for _, e := range path {
		if e.tool {
			return true
		}
	}
	return false
}

// paths are the ways from the root to an agent.
func paths(root *Agent, name string) (out [][]edge) {
	if root.Name == name {
		return [][]edge{{}}
	}
	down := func(to *Agent, tool bool) {
		for _, rest := range paths(to, name) {
			out = append(out, append([]edge{{root, to.Name, tool}}, rest...))
		}
	}
	for _, child := range root.Children {
		down(child, false)
	}
	for _, tool := range root.Tools {
		down(tool, true)
	}
	return out
}
