package agent

import (
	"iter"
	"strings"
)

// All yields every agent of the tree, parents before children and agents behind tools before sub-agents.
func (d *Definition) All() iter.Seq[*Agent] {
	return func(yield func(*Agent) bool) {
		walk(d.Root, yield)
	}
}

func walk(a *Agent, yield func(*Agent) bool) bool {
	if a == nil {
		return true
	}
	if !yield(a) {
		return false
	}
	for child := range a.below() {
		if !walk(child, yield) {
			return false
		}
	}
	return true
}

// below yields the agents that a calls like tools, and its sub-agents.
func (a *Agent) below() iter.Seq[*Agent] {
	return func(yield func(*Agent) bool) {
		for _, tool := range a.Tools {
			if tool.Agent != nil && !yield(tool.Agent.Agent) {
				return
			}
		}
		for _, child := range a.SubAgents {
			if !yield(child) {
				return
			}
		}
	}
}

// Branch is the branch of an agent's events, as ADK names it: "parallel.child" for each ParallelAgent that it is below, the
// outermost first; empty outside of all, and for names that the tree does not have. Siblings in a ParallelAgent do not see each other's events.
func (d *Definition) Branch(name string) string {
	branch, _ := branchOf(d.Root, name, "")
	return branch
}

func branchOf(a *Agent, name, branch string) (string, bool) {
	if a == nil || a.Name == name {
		return branch, a != nil
	}
	for child := range a.below() {
		below := branch
		if a.Kind == KindParallel {
			below = strings.TrimPrefix(branch+"."+a.Name+"."+child.Name, ".")
		}
		if found, ok := branchOf(child, name, below); ok {
			return found, true
		}
	}
	return "", false
}
