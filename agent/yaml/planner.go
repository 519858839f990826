package yaml

import (
	"encoding/json"
	"strings"

	"tarry/agent"
)

// planner reads the name of one of ADK's planners, with its args.
func planner(v value) *agent.Planner {
	o := v.object(nil)
	if o == nil {
		return nil
	}
	o.only([]string{"name", "args"}, nil)
	known := []string{string(agent.PlannerBuiltIn), string(agent.PlannerPlanReAct)}
	name, ok := o.get("name")
	if !ok {
		v.fail("has no name; %s", listed(known))
		return nil
	}
	text := name.text()
	if rest, adk := strings.CutPrefix(text, "google.adk.planners."); adk {
		text = rest[strings.LastIndex(rest, ".")+1:]
	}
	p := &agent.Planner{Kind: agent.PlannerKind(text)}
	args, given := o.get("args")
	switch {
	case p.Kind == agent.PlannerPlanReAct && given:
		args.fail("%s takes no args; remove them", p.Kind)
	case p.Kind == agent.PlannerPlanReAct:
	case p.Kind == agent.PlannerBuiltIn:
		if p.ThinkingConfig = thinking(v, args, given); p.ThinkingConfig == nil {
			v.doc.bad = append(v.doc.bad, v.path)
		}
	default:
		name.fail("there is no planner %s; %s", name.shown(), instead(text, known))
		return nil
	}
	return p
}

func thinking(v, args value, given bool) json.RawMessage {
	if !given {
		v.fail("%s needs args with a thinking_config", agent.PlannerBuiltIn)
		return nil
	}
	o := args.object(nil)
	if o == nil {
		return nil
	}
	o.only([]string{"thinking_config"}, nil)
	config, ok := o.get("thinking_config")
	if !ok {
		args.fail("has no thinking_config, for example {thinking_budget: 1024}")
		return nil
	}
	body, err := json.Marshal(shaped(config, generationShape().fields["thinking_config"], nil))
	if err != nil {
		config.fail("cannot be written as JSON; remove what is unusual in it")
		return nil
	}
	return body
}
