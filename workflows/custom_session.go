package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// ToolError is what a tool answered in place of a result, also because a person refused what it needs.
type ToolError struct {
	Tool    string
	Message string
}

// Error implements error.
func (e *ToolError) Error() string { return fmt.Sprintf("tool %s: %s", e.Tool, e.Message) }

// TooLargeError is a value that is longer than may stand in a run's history.
type TooLargeError struct {
	What string
	Size int // bytes of JSON
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, and %d can be read; leave it in the session, where models and tools read it", e.What, e.Size, wire.MaxRead)
}

// State reads one key of the session's state into value, a pointer to what its JSON fits; found is false, and value left as
// it is, when there is no such key. What is read stands in the run's history, so it must be no secret; where it is too long for
// that, the error is a [*TooLargeError].
func (a *Agent) State(key string, value any) (found bool, err error) {
	read, err := a.read("state "+key, wire.ReadInput{Key: key})
	if err != nil {
		return false, err
	}
	return len(read.Value) > 0, decodeStep(read.Value, value)
}

// read is a step that reads something of the session.
func (a *Agent) read(op string, in wire.ReadInput) (wire.ReadResult, error) {
	var out wire.ReadResult
	err := a.step(op, &out, func() (any, error) {
		in.Heads = a.t.heads
		return callRead(a.ctx, in)
	})
	if err == nil && out.TooLarge > 0 {
		err = &TooLargeError{What: op, Size: out.TooLarge}
	}
	return out, err
}

// Emission is an event of a custom agent. Its fields may be empty.
type Emission struct {
	// Text is what the agent says.
	Text string
	// State holds changes of the session's state, with ADK's prefixes; a nil value deletes a key. The values must encode as JSON.
	State map[string]any
	// Escalate asks the enclosing LoopAgent to stop once the agent is done.
	Escalate bool
}

// Emit appends an event. Its content goes to the session and not to the run's history.
func (a *Agent) Emit(e Emission) error {
	delta := map[string]json.RawMessage{}
	for _, key := range workflow.DeterministicKeys(e.State) {
		body, err := json.Marshal(e.State[key])
		if err != nil {
			return fmt.Errorf("agent %s: state %s: %w", a.node.Name, key, err)
		}
		delta[key] = body
	}
	a.f.Escalate = a.f.Escalate || e.Escalate
	return a.step("emit", nil, func() (any, error) {
		out, err := callEmit(a.ctx, wire.EmitInput{
			Agent: a.node.Name, Heads: a.t.heads, Scope: a.t.scope, Text: e.Text, StateDelta: delta, Escalate: e.Escalate,
		})
		if err != nil {
			return nil, err
		}
		a.t.at(out.Event)
		a.s.worked = true
		return nil, nil
	})
}

// Call calls one of the agent's tools, as a model does: it waits for a login, an approval or an answer where the tool wants
// one, is never run twice without need, and its call and response are events of the session. args must encode as a JSON
// object, or be nil. result is a pointer to what the response's JSON fits, or nil for a response that nobody looks at; what is
// read stands in the run's history, as with [Agent.State]. A tool that answers with an error, also because a person refused,
// is a [*ToolError].
func (a *Agent) Call(tool string, args, result any) error {
	body, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("agent %s: arguments of tool %s: %w", a.node.Name, tool, err)
	}
	if body[0] != '{' && string(body) != "null" {
		return fmt.Errorf("agent %s: arguments of tool %s are no JSON object", a.node.Name, tool)
	}
	var done called
	if err := a.step("call "+tool, &done, func() (any, error) { return a.call(tool, body) }); err != nil {
		return err
	}
	a.f.Escalate = a.f.Escalate || done.Escalate
	read, err := a.read("response "+tool, wire.ReadInput{Event: done.Event, Error: result == nil})
	if err != nil {
		return err
	}
	var failed struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(read.Value, &failed) == nil && len(failed.Error) > 0 {
		var message string
		if json.Unmarshal(failed.Error, &message) != nil {
			message = string(failed.Error)
		}
		return &ToolError{Tool: tool, Message: message}
	}
	return decodeStep(read.Value, result)
}

// called is what came of a call.
type called struct {
	Event    string `json:"event"`
	Escalate bool   `json:"escalate,omitempty"`
}

func (a *Agent) call(tool string, args json.RawMessage) (out called, err error) {
	if len(a.f.Calls) == 0 {
		lists, err := a.s.lists(a.ctx, a.t, a.node)
		if err != nil {
			return out, err
		}
		opened, err := callOpen(a.ctx, wire.OpenInput{Agent: a.node.Name, Heads: a.t.heads, Scope: a.t.scope, Lists: lists, Tool: tool, Args: args})
		if err != nil {
			return out, err
		}
		a.t.at(opened.Event)
		a.s.worked = true
		a.f.Calls = []wire.OpenCall{{Call: opened.Call, Event: opened.Call.Answer}}
	}
	done, err := a.s.batch(a.ctx, a.t, a.node, a.f)
	if err != nil {
		return out, err
	}
	out = called{Event: a.f.Calls[0].Event, Escalate: done.escalate}
	a.f.Calls = nil
	return out, nil
}

// sleep waits until a time. A run that is long may end meanwhile: the next one goes on sleeping.
func (s *session) sleep(ctx workflow.Context, until time.Time) (err error) {
	s.branch.asleep++
	defer func() { s.branch.asleep-- }()
	s.park(ctx)
	timed, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(workflow.NewTimerWithOptions(timed, max(until.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: "sleep"}), func(workflow.Future) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { err = ctx.Err() })
	selector.AddFuture(s.drained, func(workflow.Future) { err = errContinue })
	selector.Select(ctx)
	return err
}
