package agent

// Targets are the agents that the model of the agent called name may hand the conversation to, as in ADK: its sub-agents;
// then the agent above it, if that is an LlmAgent, and those beside it, unless the definition forbids either.
func (d *Definition) Targets(name string) []*Agent {
	a, parent := d.place(name)
	if a == nil || a.Kind != KindLLM {
		return nil
	}
	out := append([]*Agent(nil), a.SubAgents...)
	if parent == nil || parent.Kind != KindLLM {
		return out
	}
	if !a.DisallowTransferToParent {
		out = append(out, parent)
	}
	if !a.DisallowTransferToPeers {
		for _, peer := range parent.SubAgents {
			if peer != a {
				out = append(out, peer)
			}
		}
	}
	return out
}

// Transfers says whether any agent of the definition can hand the conversation to another.
func (d *Definition) Transfers() bool {
	for a := range d.All() {
		if a.Kind == KindLLM && len(a.SubAgents) > 0 {
			return true
		}
	}
	return false
}

// Converses says whether the conversation can be the named agent's: between it and the root there are only LlmAgents.
func (d *Definition) Converses(name string) bool {
	return d.climbs(name, func(*Agent) bool { return true })
}

// Resumes says whether the agent called name goes on with a conversation that it had the last word in: it converses, and
// every agent from it to the root may hand over to the one above.
func (d *Definition) Resumes(name string) bool {
	return d.climbs(name, func(a *Agent) bool { return !a.DisallowTransferToParent })
}

func (d *Definition) climbs(name string, may func(*Agent) bool) bool {
	for {
		a, parent := d.place(name)
		switch {
		case a == nil || a.Kind != KindLLM:
			return false
		case parent == nil:
			return a == d.Root
		case !may(a):
			return false
		}
		name = parent.Name
	}
}

// Behind says whether the agent called name is an agent behind a tool, or below one.
func (d *Definition) Behind(name string) bool {
	a := d.Find(name)
	return a != nil && d.Root.sub(name) == nil
}

// place finds an agent and the one it is a sub-agent of; nil for the root, and for an agent behind a tool.
func (d *Definition) place(name string) (a, parent *Agent) {
	for candidate := range d.All() {
		if candidate.Name == name {
			a = candidate
		}
		for _, child := range candidate.SubAgents {
			if child != nil && child.Name == name {
				parent = candidate
			}
		}
	}
	return a, parent
}

// sub finds an agent among a and its sub-agents.
func (a *Agent) sub(name string) *Agent {
	if a == nil || a.Name == name {
		return a
	}
	for _, child := range a.SubAgents {
		if found := child.sub(name); found != nil {
			return found
		}
	}
	return nil
}
