package agent

import "iter"

// All yields every agent of the tree, parents before children.
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
	for _, child := range a.SubAgents {
		if !walk(child, yield) {
			return false
		}
	}
	return true
}
