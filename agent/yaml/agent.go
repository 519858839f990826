package yaml

import (
	"fmt"
	"slices"
	"strings"

	"tarry/agent"
)

const classPrefix = "google.adk.agents."

func agentKeys() []string {
	keys := []string{
		"agent_class", "name", "description", "model", "instruction", "global_instruction", "static_instruction", "tools", "sub_agents", "max_iterations",
		"disallow_transfer_to_parent", "disallow_transfer_to_peers", "output_key", "output_schema", "input_schema", "include_contents", "generate_content_config", "planner", "tarry",
	}
	for _, p := range agent.CallbackPoints() {
		keys = append(keys, p.Key())
	}
	return keys
}

// laterAgentKeys are ADK's keys that are not supported yet, with what to do instead.
func laterAgentKeys() map[string]string {
	return map[string]string{
		"model_code":            "name the model with model",
		"accumulate_output_key": "",
		"code_executor":         "",
		"mode":                  "",
		"edges":                 "use SequentialAgent or LoopAgent",
		"max_concurrency":       "",
		"rerun_on_resume":       "",
	}
}

// agent reads the agent of a file that lies in dir.
func (l *loader) agent(v value, dir string) *agent.Agent {
	o := v.object(nil)
	o.only(agentKeys(), laterAgentKeys())
	for _, key := range o.order {
		o.fields[key].place(key)
	}
	a := &agent.Agent{
		Name: o.text("name"), Description: o.text("description"), OutputKey: o.text("output_key"),
		DisallowTransferToParent: o.flag("disallow_transfer_to_parent"), DisallowTransferToPeers: o.flag("disallow_transfer_to_peers"),
		Instruction: o.text("instruction"), GlobalInstruction: o.text("global_instruction"), StaticInstruction: o.text("static_instruction"),
	}
	a.Kind, a.Custom = l.kind(o)
	if !o.has("name") {
		v.doc.bad = append(v.doc.bad, "name")
		v.doc.problems.add(&Error{File: v.doc.name, Line: v.node.Line, Field: "name", Problem: "missing; give the agent a name, for example " + suggestedName(v.doc.name)})
	}
	if m, ok := o.get("model"); ok {
		a.Model = m.expanded(l.opts.Vars)
		if a.Model == "" {
			// Agents below would otherwise be told that no parent has a model.
			a.Model = "unknown"
			if !slices.Contains(v.doc.bad, m.path) {
				m.fail("is empty; name a model or leave the key out")
			}
		}
	}
	if s, ok := o.get("output_schema"); ok {
		a.OutputSchema = l.schema(s)
	}
	if s, ok := o.get("input_schema"); ok {
		a.InputSchema = l.schema(s)
	}
	if i, ok := o.get("include_contents"); ok {
		a.IncludeContents = i.text()
	}
	if m, ok := o.get("max_iterations"); ok {
		a.MaxIterations = m.integer()
	}
	if g, ok := o.get("generate_content_config"); ok {
		a.GenerateContentConfig = generation(g)
	}
	if t, ok := o.get("tools"); ok {
		for i, item := range t.list() {
			a.Tools = append(a.Tools, l.tool(item, fmt.Sprintf("tools[%d]", i), dir))
		}
	}
	if p, ok := o.get("planner"); ok {
		a.Planner = planner(p)
	}
	for _, p := range agent.CallbackPoints() {
		if c, ok := o.get(p.Key()); ok {
			l.callbacks(a, c, p)
		}
	}
	if t, ok := o.get("tarry"); ok {
		policy(t, a)
	}
	if s, ok := o.get("sub_agents"); ok {
		l.subAgents(a, s, dir)
	}
	return a
}

func (l *loader) subAgents(a *agent.Agent, v value, dir string) {
	for _, item := range v.list() {
		o := item.object(nil)
		if o == nil {
			v.doc.bad = append(v.doc.bad, "sub_agents")
			continue
		}
		o.only([]string{"config_path"}, map[string]string{"code": "write the sub-agent as a YAML file and name it with config_path"})
		var child *agent.Agent
		if c, ok := o.get("config_path"); ok {
			child = l.subAgent(c, dir)
		} else if !o.has("code") {
			item.fail("has no config_path; name the sub-agent's file")
		}
		if child == nil {
			// The list is incomplete for a reason that is reported; that it is too short is no news.
			v.doc.bad = append(v.doc.bad, "sub_agents")
			continue
		}
		a.SubAgents = append(a.SubAgents, child)
	}
}

// kind reads agent_class: one of ADK's, or the name of a registered custom agent.
func (l *loader) kind(o *object) (kind agent.Kind, custom string) {
	v, ok := o.get("agent_class")
	if !ok {
		return agent.KindLLM, ""
	}
	written := v.text()
	class, builtin := strings.CutPrefix(written, classPrefix)
	// google.adk.agents.loop_agent.LoopAgent is the same class as google.adk.agents.LoopAgent.
	if builtin {
		class = class[strings.LastIndex(class, ".")+1:]
	}
	known := []string{string(agent.KindLLM), string(agent.KindLoop), string(agent.KindSequential), string(agent.KindParallel)}
	switch {
	case written == "" && !slices.Contains(v.doc.bad, v.path):
		return agent.KindLLM, ""
	case slices.Contains(l.opts.CustomAgents, written):
		return agent.KindCustom, written
	case slices.Contains(known, class):
		return agent.Kind(class), ""
	case class == "Agent" && builtin:
		return agent.KindLLM, ""
	case slices.Contains([]string{"Workflow", "BaseAgent", "RemoteA2aAgent", "LangGraphAgent"}, class):
		v.fail("ADK knows %s, Tarry does not yet; %s", class, listed(known))
	case strings.Contains(class, "."):
		v.fail("no custom agent %s is registered; %s", v.shown(), listed(append(slices.Clone(l.opts.CustomAgents), known...)))
	case written != "":
		v.fail("there is no agent class %s; %s", v.shown(), instead(class, append(slices.Clone(l.opts.CustomAgents), known...)))
	}
	return "", ""
}

// suggestedName makes an agent's name of its file's.
func suggestedName(file string) string {
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	return identifier(strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml"), "agent")
}
