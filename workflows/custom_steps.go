package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// step does one thing and writes down what came of it, or returns what was written down. Between two steps a run may
// continue as another.
func (a *Agent) step(op string, into any, do func() (any, error)) error {
	if a.err != nil {
		return a.err
	}
	if past, ok := a.past(op); ok {
		return decodeStep(past.Result, into)
	}
	if a.s.due(a.ctx) {
		a.err = errContinue
		return a.err
	}
	result, err := do()
	if err != nil {
		a.err = err
		return err
	}
	body, err := encodeStep(result)
	if err != nil {
		return fmt.Errorf("agent %s: %s: %w", a.node.Name, op, err)
	}
	a.f.Journal = append(a.f.Journal, wire.Step{Op: op, Result: body})
	a.at++
	return decodeStep(body, into)
}

// past returns the step that was done here before this run began.
func (a *Agent) past(op string) (wire.Step, bool) {
	for a.at < len(a.f.Journal) && a.f.Journal[a.at].Op != op && strings.HasPrefix(a.f.Journal[a.at].Op, versionOp) {
		a.at++ // that the function no longer asks for
	}
	if a.at >= len(a.f.Journal) {
		return wire.Step{}, false
	}
	past := a.f.Journal[a.at]
	if past.Op != op {
		block("step %d of custom agent %s was %q and is %q now: the function has changed while the run was under way, or is not deterministic; see Agent.Version", a.at+1, a.node.Name, past.Op, op)
	}
	a.at++
	return past, true
}

// versionOp begins what [Agent.Version] writes down.
const versionOp = "version "

// passed says that an earlier run has come past here without writing op down.
func (a *Agent) passed(op string) bool {
	at := a.at
	for ; at < len(a.f.Journal); at++ {
		switch past := a.f.Journal[at].Op; {
		case past == op:
			return false
		case !strings.HasPrefix(past, versionOp):
			return true
		}
	}
	return a.f.Sub != nil || len(a.f.Branches) > 0 || len(a.f.Calls) > 0 || !a.f.Wake.IsZero() // a step that it has begun
}

func encodeStep(v any) (json.RawMessage, error) {
	if v == nil || v == false {
		return nil, nil
	}
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return body, nil
}

func decodeStep(body json.RawMessage, into any) error {
	if into == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode result: %w", err)
	}
	return nil
}

// Run runs a sub-agent to its end, whatever it waits for meanwhile. escalated says that a tool asked the enclosing loop to
// stop, as exit_loop does; what that means here is the function's to decide.
func (a *Agent) Run(child string) (escalated bool, err error) {
	nodes, err := a.children(child)
	if err != nil {
		return false, err
	}
	err = a.step("run "+child, &escalated, func() (any, error) {
		if a.f.Sub == nil {
			a.f.Sub = &wire.Frame{}
		}
		escalated, err := a.s.agentRun(a.ctx, a.t, nodes[0], a.f.Sub)
		if err == nil {
			a.f.Sub = nil
			a.s.agent = a.node.Name
		}
		return escalated, err
	})
	return escalated, err
}

// Parallel runs sub-agents side by side to their ends. None sees what the others say before all are done.
func (a *Agent) Parallel(children ...string) (escalated bool, err error) {
	nodes, err := a.children(children...)
	if err != nil || len(nodes) == 0 {
		return false, err
	}
	err = a.step("parallel "+strings.Join(children, " "), &escalated, func() (any, error) {
		escalated, err := a.s.parallel(a.ctx, a.t, agent.Node{Name: a.node.Name, Children: nodes}, a.f)
		a.s.agent = a.node.Name
		return escalated, err
	})
	return escalated, err
}

func (a *Agent) children(names ...string) ([]agent.Node, error) {
	out := make([]agent.Node, 0, len(names))
	for i, name := range names {
		at := slices.IndexFunc(a.node.Children, func(n agent.Node) bool { return n.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("agent %s has no sub-agent %q; there are %v", a.node.Name, name, a.Children())
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("agent %s cannot run %q beside itself", a.node.Name, name)
		}
		out = append(out, a.node.Children[at])
	}
	return out, nil
}

// Loop calls body with 0, 1, 2, … until it is done. Of an iteration that is over only its number is kept, so a loop may go
// on for ever; what one iteration leaves for the next must lie in the session's state, not in variables. Loops of one
// function that come after each other need no different names; a name is there for who reads the history.
func (a *Agent) Loop(name string, body func(i int) (done bool, err error)) error {
	if a.err != nil {
		return a.err
	}
	at := a.at
	past, ok := a.past("loop " + name)
	switch {
	case !ok:
		a.f.Journal = append(a.f.Journal, wire.Step{Op: "loop " + name, Loop: 1})
		a.at++
	case past.Loop == 0:
		return nil
	}
	for {
		done, err := body(a.f.Journal[at].Loop - 1)
		if a.err != nil {
			return a.err
		}
		if err != nil {
			return err
		}
		a.f.Journal, a.at = a.f.Journal[:at+1], at+1
		if done {
			a.f.Journal[at].Loop = 0
			return nil
		}
		a.f.Journal[at].Loop++
		if a.s.due(a.ctx) {
			a.err = errContinue
			return a.err
		}
	}
}

// Now is the time as the workflow knows it: the same whenever the function is called again.
func (a *Agent) Now() time.Time {
	var now time.Time
	_ = a.step("now", &now, func() (any, error) { return workflow.Now(a.ctx), nil }) // what ends the run, the next step returns
	return now
}

// Sleep waits for a time, durably: nothing runs meanwhile.
func (a *Agent) Sleep(d time.Duration) error {
	return a.step("sleep", nil, func() (any, error) {
		if a.f.Wake.IsZero() {
			a.f.Wake = workflow.Now(a.ctx).Add(d)
		}
		if err := a.s.sleep(a.ctx, a.f.Wake); err != nil {
			return nil, err
		}
		a.f.Wake = time.Time{}
		return nil, nil
	})
}
