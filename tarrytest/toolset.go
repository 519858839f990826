package tarrytest

import (
	"context"
	"slices"
	"sync"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

// Toolset stands in for an MCP server. Its tools are Go tools, for example of package tools/function. Safe for concurrent
// use once it is set up.
type Toolset struct {
	tools []tools.Tool
	// OpenListing says that only calls need a login.
	OpenListing bool
	// Public says that nothing needs a login.
	Public bool
	// Broken, if set, is the error of every listing and call.
	Broken error

	mu    sync.Mutex
	calls []tools.Call
	lists int
}

// NewToolset makes a toolset whose listing and calls need a login.
func NewToolset(all ...tools.Tool) *Toolset { return &Toolset{tools: all} }

// Calls lists the calls that reached a tool, in order.
func (s *Toolset) Calls() []tools.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Lists counts the listings that were given.
func (s *Toolset) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// Toolsets opens fakes by the name of the toolset in the definition.
type Toolsets map[string]*Toolset

// Open implements [tools.Opener].
func (all Toolsets) Open(_ context.Context, def *agent.MCPToolset, _ agent.Owner, broker auth.Broker) (tools.Toolset, error) {
	s, ok := all[def.Name]
	if !ok {
		return nil, tools.Errorf("there is no toolset %q in this test; give it with tarrytest.WithToolset", def.Name)
	}
	want := auth.Want{Server: def.URL, Toolset: def.Name}
	if def.Auth != nil {
		want.Auth = *def.Auth
	}
	return &opened{Toolset: s, want: want, broker: broker}, nil
}

type opened struct {
	*Toolset
	want   auth.Want
	broker auth.Broker
}

// List implements [tools.Toolset].
func (o *opened) List(ctx context.Context) ([]tools.Declaration, error) {
	if o.Broken != nil {
		return nil, o.Broken
	}
	if !o.Public && !o.OpenListing {
		if _, err := o.broker.Token(ctx, o.want); err != nil {
			return nil, err //nolint:wrapcheck // as it is
		}
	}
	var out []tools.Declaration
	for _, t := range o.tools {
		out = append(out, t.Declaration())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists++
	return out, nil
}

// Call implements [tools.Toolset].
func (o *opened) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	if o.Broken != nil {
		return tools.Result{}, o.Broken
	}
	if !o.Public {
		want := o.want
		want.Tool = call.Name
		if _, err := o.broker.Token(ctx, want); err != nil {
			return tools.Result{}, err //nolint:wrapcheck // as it is
		}
	}
	for _, t := range o.tools {
		if t.Declaration().Name == call.Name {
			o.mu.Lock()
			o.calls = append(o.calls, call)
			o.mu.Unlock()
			return t.Call(ctx, call) //nolint:wrapcheck // as it is
		}
	}
	return tools.Result{}, tools.Errorf("there is no tool %q", call.Name)
}
