package yaml

import "tarry/agent"

// agentTool reads the args of an AgentTool; nil after an error.
func (l *loader) agentTool(o *object, v value, dir string) *agent.AgentTool {
	args, ok := o.get("args")
	if !ok {
		v.fail("AgentTool has no args; write agent: with a config_path")
		return nil
	}
	fields := args.object(nil)
	if fields == nil {
		return nil
	}
	fields.only([]string{"agent", "skip_summarization"}, map[string]string{"include_plugins": "", "propagate_grounding_metadata": ""})
	ref, ok := fields.get("agent")
	if !ok {
		args.fail("has no agent; write agent: with a config_path")
		return nil
	}
	target := ref.object(nil)
	if target == nil {
		return nil
	}
	target.only([]string{"config_path"}, map[string]string{"code": "write the agent as a YAML file and name it with config_path"})
	file, ok := target.get("config_path")
	if !ok {
		ref.fail("has no config_path; name the agent's file")
		return nil
	}
	called := l.subAgent(file, dir)
	if called == nil {
		return nil
	}
	return &agent.AgentTool{Agent: called, SkipSummarization: fields.flag("skip_summarization")}
}
