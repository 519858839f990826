package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"tarry/agent"
	"tarry/wire"
)

// started reads the start input. unknown names what in it this version does not know.
func started(h *historypb.History) (in wire.SessionInput, unknown string, err error) {
	if len(h.GetEvents()) == 0 || h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return in, "", fmt.Errorf("%w: it does not begin with a started event", ErrHistory)
	}
	a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if name := a.GetWorkflowType().GetName(); name != wire.WorkflowSession {
		return in, "", fmt.Errorf("%w: its workflow is %q, not %q", ErrHistory, name, wire.WorkflowSession)
	}
	if len(h.GetEvents()) < leastEvents {
		return in, "", fmt.Errorf("%w: nothing of it is there but its start", ErrHistory)
	}
	body := joined(a.GetInput())
	if err := json.Unmarshal(body, &in); err != nil {
		return in, "", fmt.Errorf("%w: its start input (event 1) cannot be read: %w", ErrHistory, err)
	}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&wire.SessionInput{}); err != nil {
		return in, strings.TrimPrefix(err.Error(), "json: unknown "), nil
	}
	for n := range nodes(in.Plan.Root) {
		if !slices.Contains([]agent.Kind{agent.KindLLM, agent.KindLoop, agent.KindSequential, agent.KindParallel, agent.KindCustom}, n.Kind) {
			return in, fmt.Sprintf("agent %s of kind %q", n.Name, n.Kind), nil
		}
	}
	return in, "", nil
}

// leastEvents are those of a run that no worker has seen yet: its start, and the workflow task that waits for one.
const leastEvents = 2

// nodes are a plan's agents, parents first.
func nodes(n agent.Node) func(yield func(agent.Node) bool) {
	return func(yield func(agent.Node) bool) { walk(n, yield) }
}

func walk(n agent.Node, yield func(agent.Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, child := range slices.Concat(n.Children, n.AgentTools) {
		if !walk(child, yield) {
			return false
		}
	}
	return true
}

// registered says which custom agents of a plan are missing.
func (p Replayer) registered(root agent.Node) error {
	for n := range nodes(root) {
		if n.Kind != agent.KindCustom || p.Agents[n.Custom] != nil {
			continue
		}
		known := "none is registered"
		if len(p.Agents) > 0 {
			known = "registered are " + strings.Join(slices.Sorted(maps.Keys(p.Agents)), ", ")
		}
		return fmt.Errorf("%w: agent %s is the Go function %q, and %s; replay it in a test of the program that has it, with replay.Replayer{Agents: …}",
			ErrAgents, n.Name, n.Custom, known)
	}
	return nil
}

// explain finds a better reason than the kind of the difference: what the SDK says, or what the plan shows.
func (e *DifferenceError) explain(plan agent.Plan) {
	var custom, names []string
	for n := range nodes(plan.Root) {
		names = append(names, n.Name)
		if n.Kind == agent.KindCustom {
			custom = append(custom, n.Name)
		}
	}
	switch {
	case e.agent != "" && !slices.Contains(names, e.agent):
		e.Reason = fmt.Sprintf(reasonStart, e.agent)
	case e.says("removed support of version", "too old to support version"):
		e.Reason = reasonVersion
	case e.Cause != nil && e.Now == "" && !e.says("nondeterministic workflow", "a matching", "lookup failed", "code executed local activity"):
		e.Reason = brief(e.Cause) // the code did not get further for another reason than its steps, such as a panic
	case len(custom) > 0:
		e.Reason = fmt.Sprintf("Likely a custom agent was changed (%s): put the change behind Agent.Version, so that runs which are under way keep its old steps", strings.Join(custom, ", "))
	}
}

func (e *DifferenceError) says(parts ...string) bool {
	return e.Cause != nil && slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(e.Cause.Error(), part) })
}
