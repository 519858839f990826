package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// turn is a model call that is ready to be made.
type turn struct {
	invocation string
	request    *models.Request
	tools      map[string]offered // by the name that the model knows
	output     *output            // nil: any form of answer will do
	hooks      *hooks             // nil: no callbacks
	planned    bool               // the answer has the tags of a plan
	pieces     *pieces            // nil: nobody reads along
}

// offered is a tool as a model sees it, and where its calls go.
type offered struct {
	toolset, name string
	declaration   tools.Declaration
	longRunning   bool
}

// names tells a model what it may call.
func (t turn) names() string {
	if len(t.tools) == 0 {
		return "There are no tools."
	}
	return "Call one of: " + strings.Join(slices.Sorted(maps.Keys(t.tools)), ", ") + "."
}

// turnError is a mistake of the definition that only shows at run time; the person is told.
type turnError struct{ message string }

func (e *turnError) Error() string { return e.message }

// prepare builds the request from the session's view: the instruction with state filled in, the conversation as this
// agent sees it, and the tools.
func (a *Activities) prepare(ctx context.Context, t *attempt, in wire.ModelInput) (turn, error) {
	node := t.def.Find(in.Agent)
	if node == nil {
		return turn{}, final("the definition has no such agent")
	}
	view, err := a.views.View(ctx, t.row, in.Heads)
	if err != nil || len(view) == 0 {
		return turn{}, a.failed(ctx, "read session", err)
	}
	out := turn{invocation: view[len(view)-1].InvocationID, tools: map[string]offered{}}
	contents, err := a.views.Contents(ctx, t.row, in.Heads, session.Reader{
		Agent: in.Agent, Branch: t.def.Branch(in.Agent), Scope: in.Scope, Include: node.IncludeContents,
	})
	if err != nil {
		return out, a.failed(ctx, "build conversation", err)
	}
	if in.Scope != "" {
		asked, err := a.request(ctx, t, in.Scope)
		if err != nil {
			return out, err
		}
		contents = append([]*genai.Content{asked}, contents...)
	}
	out.request = &models.Request{Model: t.def.ModelOf(in.Agent), Agent: in.Agent, Invocation: out.invocation, Contents: contents, Config: &genai.GenerateContentConfig{}}
	if len(node.GenerateContentConfig) > 0 {
		if err := json.Unmarshal(node.GenerateContentConfig, out.request.Config); err != nil {
			return out, &turnError{"generate_content_config of agent " + in.Agent + " cannot be read"}
		}
	}
	state, err := a.state(ctx, t, in.Heads, out.invocation)
	if err != nil {
		return out, err
	}
	if out.hooks, err = a.hooksOf(t, node, out.invocation, state); err != nil {
		return out, err
	}
	k := &keys{state: state, text: a.artifactText(ctx, t)}
	system, said, err := instructions(t.def, node, k)
	switch {
	case err != nil && k.failed != nil && !errors.As(k.failed, new(*turnError)):
		return out, k.failed
	case err != nil:
		return out, &turnError{err.Error()}
	}
	if said != "" {
		out.request.Contents = beforeUser(contents, genai.NewContentFromText(said, genai.RoleUser))
	}
	if out.output, err = outputOf(node, view); err != nil {
		return out, err
	}
	notes, err := a.offer(ctx, t, node, in.Lists, &out)
	if err != nil {
		return out, err
	}
	if note := a.offerTransfer(t.def, node, &out); note != "" {
		notes = append(notes, note)
	}
	more, err := a.recall(ctx, t, node, view, &out)
	if err != nil {
		return out, err
	}
	notes = append(notes, more...)
	note, err := plan(node.Planner, &out)
	if err != nil {
		return out, err
	}
	if note != "" {
		notes = append(notes, note)
	}
	if out.output != nil {
		if note := out.output.require(&out); note != "" {
			notes = append(notes, note)
		}
	}
	out.request.Config.SystemInstruction = genai.NewContentFromText(strings.Join(append(system, notes...), "\n\n"), genai.RoleUser)
	return out, nil
}

// state is the session's at heads, for an invocation.
func (a *Activities) state(ctx context.Context, t *attempt, heads []string, invocation string) (map[string]any, error) {
	changes, err := a.views.Changes(ctx, t.row, heads)
	if err != nil {
		return nil, a.failed(ctx, "read session", err)
	}
	scoped, err := a.Log.Scoped(ctx, t.row.Owner)
	if err != nil {
		return nil, a.failed(ctx, "read state", err)
	}
	return session.Fold(t.row.Initial, scoped, changes, invocation), nil
}

// offer fills in the tools, and returns what the model must know about those that are missing.
func (a *Activities) offer(ctx context.Context, t *attempt, node *agent.Agent, lists []string, out *turn) (notes []string, err error) {
	listed := map[string]listing{}
	for _, id := range lists {
		toolset, body, err := a.Listings.Listing(ctx, t.row, t.row.WorkflowID+" "+id)
		if err != nil {
			return nil, a.failed(ctx, "read listing", err)
		}
		var l listing
		if err := json.Unmarshal(body, &l); err != nil {
			return nil, final("stored listing cannot be read")
		}
		listed[toolset] = l
	}
	var declared []*genai.FunctionDeclaration
	add := func(toolset, name string, d tools.Declaration) {
		public := publicName(name) // providers allow no dots
		if _, taken := out.tools[public]; taken || agent.Reserved(public) || out.output != nil && public == setModelResponse {
			a.Slog.WarnContext(ctx, "tool is hidden by another of the same name", "tool", name, "toolset", toolset, "agent", node.Name)
			return
		}
		out.tools[public] = offered{toolset: toolset, name: name, declaration: d}
		declared = append(declared, declaration(public, d))
	}
	for _, tool := range node.Tools {
		switch {
		case tool.Builtin != "":
			if found, ok := a.Builtins.Tool(tool.Builtin); ok {
				add(wire.ToolsetBuiltin, tool.Builtin, found.Declaration())
			}
		case tool.Function != "":
			found, ok := a.Functions.Tool(tool.Function)
			if !ok {
				return nil, &turnError{fmt.Sprintf("Agent %s uses the tool %s, which is not registered with this worker.", node.Name, tool.Function)}
			}
			add(wire.ToolsetFunction, tool.Function, found.Declaration())
			if o := out.tools[publicName(tool.Function)]; o.name == tool.Function && o.toolset == wire.ToolsetFunction {
				o.longRunning = a.longRunning(node, tool.Function)
				out.tools[publicName(tool.Function)] = o
			}
		case tool.Agent != nil:
			add(wire.ToolsetAgent, tool.Agent.Agent.Name, declarationOf(tool.Agent.Agent))
		case tool.MCP != nil:
			l, ok := listed[tool.MCP.Name]
			switch {
			case !ok:
				notes = append(notes, "The tools of "+tool.MCP.Name+" are not available: the login they need was not granted.")
			case l.Full:
				notes = append(notes, "The tools of "+tool.MCP.Name+" are not available: they need a login. "+tooManyAsked)
			case l.Failed:
				notes = append(notes, "The tools of "+tool.MCP.Name+" are not available: their server cannot be reached.")
			}
			for _, d := range l.Tools {
				if takesConnect(node, tool.MCP, d.Name) {
					a.Slog.WarnContext(ctx, "tool has the name of the one that connects another toolset, and is hidden", "tool", d.Name, "toolset", tool.MCP.Name, "agent", node.Name)
					continue
				}
				if takesOwn(node, d.Name) {
					a.Slog.WarnContext(ctx, "tool is hidden by another of the same name", "tool", d.Name, "toolset", tool.MCP.Name, "agent", node.Name)
					continue
				}
				add(tool.MCP.Name, d.Name, d)
			}
		}
	}
	if len(declared) > 0 {
		out.request.Config.Tools = append(out.request.Config.Tools, &genai.Tool{FunctionDeclarations: declared})
	}
	return notes, nil
}

// takesOwn says whether a server's tool has the name of a tool or an agent that the program itself has given to the agent: a
// server must not get the calls that are meant for those, wherever it stands among them.
func takesOwn(node *agent.Agent, name string) bool {
	return slices.ContainsFunc(node.Tools, func(t agent.Tool) bool {
		own := t.Builtin
		switch {
		case t.Function != "":
			own = t.Function
		case t.Agent != nil:
			own = t.Agent.Agent.Name
		}
		return own != "" && publicName(own) == publicName(name)
	})
}

func declaration(name string, d tools.Declaration) *genai.FunctionDeclaration {
	f := &genai.FunctionDeclaration{Name: name, Description: d.Description}
	if len(d.Parameters) > 0 {
		f.ParametersJsonSchema = d.Parameters
	}
	return f
}

func encode(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return body
}
