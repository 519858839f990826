package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// FieldError is one thing that is wrong with a definition.
type FieldError struct {
	// Agent is the name of the agent, or its place in the tree (root.sub_agents[1]) when it has none. Empty means the
	// definition as a whole.
	Agent string
	// At is the agent itself; nil means the definition as a whole.
	At *Agent
	// Field is the ADK key.
	Field string
	// Problem names the value and the mend.
	Problem string
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Agent == "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Problem)
	}
	return fmt.Sprintf("agent %q: %s: %s", e.Agent, e.Field, e.Problem)
}

const maxDepth = 16

// Validate reports everything that is wrong with d, joined: each part is a [*FieldError].
func (d *Definition) Validate() error {
	v := &validator{seen: map[string]bool{}, toolsets: map[string]bool{}}
	if err := CheckID("app", d.App); err != nil {
		v.add(nil, "app", "%v", err)
	}
	if d.Root == nil {
		v.add(nil, "root", "the definition has no root agent")
		return errors.Join(v.errs...)
	}
	v.agent(d.Root, "root", "", 0)
	return errors.Join(v.errs...)
}

type validator struct {
	seen     map[string]bool
	toolsets map[string]bool
	place    string // of the agent at hand
	errs     []error
}

func (v *validator) add(a *Agent, field, format string, args ...any) {
	e := &FieldError{At: a, Field: field, Problem: fmt.Sprintf(format, args...)}
	if a != nil {
		e.Agent = cmp.Or(a.Name, v.place)
	}
	v.errs = append(v.errs, e)
}

func (v *validator) agent(a *Agent, place, model string, depth int) {
	v.place = place
	if depth > maxDepth {
		v.add(a, "sub_agents", "nested deeper than %d", maxDepth)
		return
	}
	v.name(a)
	if a.Model != "" {
		model = a.Model
	}
	if a.GlobalInstruction != "" && depth > 0 {
		v.add(a, "global_instruction", "only the root agent has it; move it there, or into instruction")
	}
	v.policy(a, depth)
	switch a.Kind {
	case KindLLM:
		v.llm(a, model)
	case KindLoop, KindSequential, KindParallel:
		v.composite(a)
	case KindCustom:
		v.custom(a)
	default:
		v.add(a, "agent_class", "%q is not one of %s, %s, %s, %s, %s", a.Kind, KindLLM, KindLoop, KindSequential, KindParallel, KindCustom)
	}
	v.callbacks(a)
	v.agentTools(a, place, model, depth)
	for i, child := range a.SubAgents {
		at := fmt.Sprintf("%s.sub_agents[%d]", place, i)
		if child == nil {
			v.add(a, fmt.Sprintf("sub_agents[%d]", i), "there is no agent")
			continue
		}
		v.agent(child, at, model, depth+1)
	}
}

func (v *validator) name(a *Agent) {
	switch {
	case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`).MatchString(a.Name):
		v.add(a, "name", "%q is not an identifier (letters, digits, underscores, at most 64)", a.Name)
	case a.Name == UserAuthor:
		v.add(a, "name", `"user" is the author of what people say; choose another name`)
	case v.seen[a.Name]:
		v.add(a, "name", "used twice in the tree; each agent needs a name of its own")
	}
	v.seen[a.Name] = true
}

func (v *validator) llm(a *Agent, model string) {
	if model == "" {
		v.add(a, "model", "missing; set it here or on a parent, for example gemini-2.5-flash")
	}
	if a.MaxIterations != 0 {
		v.add(a, "max_iterations", "only a LoopAgent has it")
	}
	switch a.IncludeContents {
	case "", "default", "none":
	default:
		v.add(a, "include_contents", `%q is neither "default" nor "none"`, a.IncludeContents)
	}
	v.generation(a)
	v.tools(a)
}

func (v *validator) tools(a *Agent) {
	declared, connects := map[string]bool{}, map[string]bool{}
	for i, tool := range a.Tools {
		v.tool(a, i, tool)
		if m := tool.MCP; m != nil && m.Lazy {
			prefix := cmp.Or(m.NamePrefix, m.Name)
			if connects[prefix] {
				v.add(a, fmt.Sprintf("tools[%d].tool_name_prefix", i), "%q is that of another lazy toolset, and %s_connect can connect one only", prefix, prefix)
			}
			connects[prefix] = true
		}
		name := tool.Builtin + tool.Function
		if tool.Agent != nil && tool.Agent.Agent != nil {
			name = tool.Agent.Agent.Name
		}
		if name != "" {
			if declared[name] {
				v.add(a, fmt.Sprintf("tools[%d]", i), "%s is there twice; remove one", name)
			}
			declared[name] = true
		}
	}
}

func (v *validator) composite(a *Agent) {
	if len(a.SubAgents) == 0 {
		v.add(a, "sub_agents", "a %s needs at least one", a.Kind)
	}
	if a.Kind != KindLoop && a.MaxIterations != 0 {
		v.add(a, "max_iterations", "only a LoopAgent has it")
	}
	v.noModel(a)
	for _, f := range []struct {
		name string
		set  bool
	}{{"deadline", a.Wait.Deadline > 0}, {"on_deadline", a.Wait.OnDeadline != ""}, {"remind", a.Wait.Remind > 0}} {
		if f.set {
			v.add(a, f.name, "a %s calls no model and no tools; move it to a sub-agent", a.Kind)
		}
	}
	if len(a.Tools) > 0 {
		v.add(a, "tools", "a %s calls no tools; move them to a sub-agent", a.Kind)
	}
}

// noModel checks that an agent without a model has nothing that is for one.
func (v *validator) noModel(a *Agent) {
	if a.MaxIterations < 0 {
		v.add(a, "max_iterations", "%d is negative; leave it out to loop until a tool exits", a.MaxIterations)
	}
	if a.Instruction != "" {
		v.add(a, "instruction", "a %s calls no model; move it to a sub-agent", a.Kind)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"static_instruction", a.StaticInstruction != ""},
		{"output_key", a.OutputKey != ""},
		{"output_schema", len(a.OutputSchema) > 0},
		{"input_schema", len(a.InputSchema) > 0},
		{"include_contents", a.IncludeContents != ""},
		{"callbacks", slices.ContainsFunc(slices.Collect(maps.Keys(a.Callbacks)), func(p CallbackPoint) bool { return !p.Around() && a.Kind != KindCustom })},
		{"disallow_transfer_to_parent", a.DisallowTransferToParent},
		{"disallow_transfer_to_peers", a.DisallowTransferToPeers},
		{"planner", a.Planner != nil},
		{"generate_content_config", len(a.GenerateContentConfig) > 0},
	} {
		if f.set {
			v.add(a, f.name, "a %s calls no model and no tools; move it to a sub-agent", a.Kind)
		}
	}
	if a.Custom != "" && a.Kind != KindCustom {
		v.add(a, "custom", "only a CustomAgent has a function")
	}
}

func (v *validator) custom(a *Agent) {
	if a.Custom == "" {
		v.add(a, "custom", "missing; name the registered function")
	}
	if a.MaxIterations != 0 {
		v.add(a, "max_iterations", "only a LoopAgent has it")
	}
	v.noModel(a)
	v.tools(a)
}

// agentTools checks the agents behind tools, which are trees of their own.
func (v *validator) agentTools(a *Agent, place, model string, depth int) {
	for i, tool := range a.Tools {
		if tool.Agent == nil {
			continue
		}
		field := fmt.Sprintf("tools[%d]", i)
		if tool.Agent.Agent == nil {
			v.add(a, field, "there is no agent")
			continue
		}
		if name := tool.Agent.Agent.Name; Reserved(name) {
			v.add(a, field, "%q is a reserved name of a tool; call the agent something else", name)
		}
		v.agent(tool.Agent.Agent, place+"."+field, model, depth+1)
	}
}

func (v *validator) tool(a *Agent, i int, t Tool) {
	field := fmt.Sprintf("tools[%d]", i)
	set := 0
	for _, on := range []bool{t.Builtin != "", t.Function != "", t.MCP != nil, t.Agent != nil} {
		if on {
			set++
		}
	}
	if set != 1 {
		v.add(a, field, "name exactly one tool")
		return
	}
	switch {
	case t.Builtin != "" && !slices.Contains(Builtins(), t.Builtin):
		v.add(a, field, "there is no built-in tool %q; there are %s", t.Builtin, strings.Join(Builtins(), ", "))
	case t.LongRunning && t.Function == "":
		v.add(a, field, "only a function can be long-running; name one")
	case Reserved(t.Function):
		v.add(a, field, "%q is a reserved name", t.Function)
	case t.MCP != nil:
		v.toolset(a, field, t.MCP)
	}
}

func (v *validator) generation(a *Agent) {
	config := v.object(a, "generate_content_config", a.GenerateContentConfig)
	v.object(a, "input_schema", a.InputSchema)
	v.planner(a, config)
	if v.object(a, "output_schema", a.OutputSchema) == nil {
		return
	}
	for _, key := range []string{"responseJsonSchema", "responseSchema", "responseMimeType"} {
		if _, set := config[key]; set {
			v.add(a, "generate_content_config", "%s is set by output_schema; remove one of them", key)
		}
	}
}

func (v *validator) planner(a *Agent, config map[string]json.RawMessage) {
	switch {
	case a.Planner == nil:
	case a.Planner.Kind == PlannerBuiltIn && len(a.Planner.ThinkingConfig) == 0:
		v.add(a, "planner", "has no thinking_config")
	case a.Planner.Kind == PlannerBuiltIn:
		v.object(a, "planner", a.Planner.ThinkingConfig)
		if _, set := config["thinkingConfig"]; set {
			v.add(a, "generate_content_config", "thinkingConfig is set by planner; remove one of them")
		}
	case a.Planner.Kind != PlannerPlanReAct:
		v.add(a, "planner", "%q is not one of %s, %s", a.Planner.Kind, PlannerBuiltIn, PlannerPlanReAct)
	case len(a.Planner.ThinkingConfig) > 0:
		v.add(a, "planner", "a %s has no thinking_config", PlannerPlanReAct)
	}
}

func (v *validator) callbacks(a *Agent) {
	for _, p := range slices.Sorted(maps.Keys(a.Callbacks)) {
		if !slices.Contains(CallbackPoints(), p) {
			v.add(a, "callbacks", "%q is not one of %v", p, CallbackPoints())
			continue
		}
		for i, c := range a.Callbacks[p] {
			field := fmt.Sprintf("%s[%d]", p.Key(), i)
			if c.Name == "" {
				v.add(a, field, "has no name; name a registered callback")
			}
			v.object(a, field+".args", c.Args)
		}
	}
}

func (v *validator) object(a *Agent, field string, body json.RawMessage) map[string]json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		v.add(a, field, "not a JSON object")
	}
	return object
}
