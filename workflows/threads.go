package workflows

import "tarry/wire"

// thread is one line of an invocation: the events that its next one follows. The children of a ParallelAgent have one each.
type thread struct {
	heads []string
	// root is the session's own heads, for the thread that is the invocation's first.
	root *wire.Carry
	// scope is the call that the thread answers, for an agent behind a tool.
	scope string
}

func (s *session) rootThread() *thread { return &thread{heads: s.carry.Heads, root: &s.carry} }

func (t *thread) at(heads ...string) {
	t.heads = heads
	if t.root != nil {
		t.root.Heads = heads
	}
}
