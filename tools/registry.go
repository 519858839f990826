package tools

import (
	"fmt"
	"maps"
	"slices"

	"tarry/agent"
)

// Registry holds a worker's Go tools by name. It is filled before the worker starts and read only after.
type Registry struct {
	tools map[string]Tool
}

// NewRegistry holds the given tools. A name that is used twice, empty or reserved is an error.
func NewRegistry(all ...Tool) (*Registry, error) {
	r := &Registry{tools: map[string]Tool{}}
	for _, t := range all {
		name := t.Declaration().Name
		switch {
		case name == "":
			return nil, fmt.Errorf("tool %T has no name", t)
		case agent.Reserved(name):
			return nil, fmt.Errorf("tool name %q is reserved", name)
		case r.tools[name] != nil:
			return nil, fmt.Errorf("two tools are called %q", name)
		}
		r.tools[name] = t
	}
	return r, nil
}

// Tool returns the tool called name.
func (r *Registry) Tool(name string) (Tool, bool) {
	t, ok := r.tools[name]
	return t, ok
}

// Names lists the tools, sorted.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.tools))
}
