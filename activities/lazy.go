package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// A lazy toolset that cannot be listed without a login is not waited for. The model gets one tool in its place; its call
// asks for the login as any call does, and leaves the listing behind.

// connectTool is the name of that tool.
func connectTool(def *agent.MCPToolset) string {
	prefix := def.NamePrefix
	if prefix == "" {
		prefix = def.Name
	}
	return prefix + "_connect"
}

func lazyListing(def *agent.MCPToolset) listing {
	return listing{Tools: []tools.Declaration{{
		Name: connectTool(def),
		Description: fmt.Sprintf("Connects to %s, whose tools are not known yet because a person must log in there first. "+
			"Call this when the task needs them: it asks the person, waits, and answers with the names of the tools, which can be called from then on.",
			host(def.URL)),
		Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
		Idempotent: true,
	}}}
}

func host(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return "an MCP server"
}

// withoutConnect drops a server's tool that has the name of ours.
func withoutConnect(def *agent.MCPToolset, found []tools.Declaration) []tools.Declaration {
	if !def.Lazy {
		return found
	}
	return slices.DeleteFunc(found, func(d tools.Declaration) bool { return d.Name == connectTool(def) })
}

// takesConnect says whether a tool of def has the name by which a model connects another toolset of the agent: a server
// must not get calls that were meant to bring a login about.
func takesConnect(node *agent.Agent, def *agent.MCPToolset, name string) bool {
	if def.Lazy && name == connectTool(def) {
		return false
	}
	return slices.ContainsFunc(node.Tools, func(t agent.Tool) bool {
		return t.MCP != nil && t.MCP.Lazy && t.MCP.Name != def.Name && connectTool(t.MCP) == publicName(name)
	})
}

// connect lists the toolset on behalf of a call.
func (a *Activities) connect(ctx context.Context, t *attempt, def *agent.MCPToolset, toolset tools.Toolset, scrub *auth.Scrubber) (tools.Result, error) {
	found, err := toolset.List(ctx)
	if err != nil {
		return tools.Result{}, err //nolint:wrapcheck // classified by the caller
	}
	found = withoutConnect(def, found)
	if _, err := a.storeListing(ctx, t, def.Name, listing{Tools: found}, scrub); err != nil {
		return tools.Result{}, fmt.Errorf("%w: %w", tools.ErrNotExecuted, err)
	}
	names := make([]string, 0, len(found))
	for _, d := range found {
		names = append(names, publicName(d.Name))
	}
	return tools.Result{Response: map[string]any{"connected": true, "tools": strings.Join(names, ", ")}}, nil
}

// listed adds to a result what a connecting call has listed, also when an earlier attempt did it.
func (a *Activities) listed(ctx context.Context, t *attempt, call session.Call, out wire.ToolResult) wire.ToolResult {
	def := t.def.Toolset(call.Toolset)
	if def == nil || !def.Lazy || call.Name != connectTool(def) || out.Event == "" {
		return out
	}
	id := t.listID(def.Name)
	if _, _, err := a.Listings.Listing(ctx, t.row, t.row.WorkflowID+" "+id); err == nil {
		out.Toolset, out.List = def.Name, id
	}
	return out
}
