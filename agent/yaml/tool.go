package yaml

import (
	"slices"
	"strings"

	"tarry/agent"
)

const toolPrefix = "google.adk.tools."

// laterTools are ADK's own tools that are not supported yet.
func laterTools() []string {
	return []string{
		"ExampleTool", "FunctionTool", "google_search", "url_context",
		"get_user_choice", agent.TransferToAgent,
		"enterprise_web_search", "google_maps_grounding", "VertexAiSearchTool", "DiscoveryEngineSearchTool",
		"OpenAPIToolset", "APIHubToolset", "ApplicationIntegrationToolset", "BigQueryToolset", "ToolboxToolset",
		"SkillToolset",
	}
}

// tool reads one entry of tools. After an error it returns a tool that is empty, so that the others keep their places.
func (l *loader) tool(v value, field, dir string) agent.Tool {
	v.place(field)
	o := v.object(nil)
	if o == nil {
		return agent.Tool{}
	}
	o.only([]string{"name", "args"}, nil)
	n, ok := o.get("name")
	if !ok {
		v.fail("has no name; write - name: and the tool")
		return agent.Tool{}
	}
	name := n.text()
	if name == "" {
		// A tool without a name is reported once, not again as a definition without it.
		v.doc.bad = append(v.doc.bad, v.path)
		if !slices.Contains(v.doc.bad, n.path) {
			n.fail("is empty; name a tool")
		}
		return agent.Tool{}
	}
	adk, own := builtinName(name)
	switch {
	case own && slices.Contains(agent.Builtins(), adk):
		l.noArgs(o)
		return agent.Tool{Builtin: adk}
	case own && adk == "LongRunningFunctionTool":
		t := l.longRunning(o, n)
		if t.Function == "" {
			v.doc.bad = append(v.doc.bad, v.path)
		}
		return t
	case own && (adk == "McpToolset" || adk == "MCPToolset"):
		m := l.toolset(o, field)
		if m == nil {
			v.doc.bad = append(v.doc.bad, v.path)
			return agent.Tool{}
		}
		return agent.Tool{MCP: m}
	case own && adk == "AgentTool":
		t := l.agentTool(o, v, dir)
		if t == nil {
			v.doc.bad = append(v.doc.bad, v.path)
			return agent.Tool{}
		}
		return agent.Tool{Agent: t}
	case slices.Contains(l.opts.Functions, name):
		l.noArgs(o)
		return agent.Tool{Function: name}
	}
	// The mistake stands in the name's line.
	v.doc.bad = append(v.doc.bad, v.path)
	switch {
	case own && slices.Contains(laterTools(), adk):
		n.fail("ADK knows %s, Tarry does not yet; remove it or register a Go tool", adk)
	case strings.Contains(name, "."):
		n.fail("no Go tool %s is registered; %s", n.shown(), listed(l.opts.Functions))
	default:
		n.fail("there is no tool %s; built in: %s, McpToolset; registered Go tools: %s", n.shown(), strings.Join(agent.Builtins(), ", "),
			strings.TrimPrefix(listed(l.opts.Functions), "known: "))
	}
	return agent.Tool{}
}

// longRunning reads ADK's LongRunningFunctionTool: a registered function whose result comes later.
func (l *loader) longRunning(o *object, name value) agent.Tool {
	args, ok := o.get("args")
	if !ok {
		name.fail("has no args; write args: {func: NAME} with a registered Go tool; %s", listed(l.opts.Functions))
		return agent.Tool{}
	}
	in := args.object(nil)
	if in == nil {
		return agent.Tool{}
	}
	in.only([]string{"func"}, nil)
	f, ok := in.get("func")
	if !ok {
		args.fail("has no func; name a registered Go tool; %s", listed(l.opts.Functions))
		return agent.Tool{}
	}
	function := f.text()
	if !slices.Contains(l.opts.Functions, function) {
		f.fail("no Go tool %s is registered; %s", f.shown(), listed(l.opts.Functions))
		return agent.Tool{}
	}
	return agent.Tool{Function: function, LongRunning: true}
}

// builtinName says whether name is one of ADK's package google.adk.tools, with or without the package, and which.
func builtinName(name string) (string, bool) {
	rest, dotted := strings.CutPrefix(name, toolPrefix)
	if !dotted {
		return name, !strings.Contains(name, ".")
	}
	return rest[strings.LastIndex(rest, ".")+1:], true
}

func (l *loader) noArgs(o *object) {
	if args, ok := o.get("args"); ok {
		args.fail("this tool takes no args here; remove them")
	}
}
