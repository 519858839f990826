package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// An approval is a request of its own for each call, and for each time that its tool asks. It is found in the store, never
// in the input of an activity, an event or a signal: those only say that it is worth looking.

// confirmationRequired finds the typed error of a tool that wants an approval.
func confirmationRequired(err error) (*tools.ConfirmationRequiredError, bool) {
	var e *tools.ConfirmationRequiredError
	ok := errors.As(err, &e)
	return e, ok
}

// guards says whether any tool of the definition is guarded.
func (a *Activities) guards(def *agent.Definition) bool {
	for node := range def.All() {
		for _, tool := range node.Tools {
			if tool.MCP != nil && (tool.MCP.RequireConfirmation || len(tool.MCP.Confirm) > 0) || tool.Function != "" && a.guardedFunction(tool.Function) {
				return true
			}
		}
	}
	return false
}

func (a *Activities) guardedFunction(name string) bool {
	tool, _ := a.Functions.Tool(name)
	guarded, ok := tool.(tools.Guarded)
	return ok && guarded.RequiresConfirmation()
}

// guarded says whether a call may run only with a person's approval. The tool that connects a lazy toolset is ours, and has
// no effect.
func (a *Activities) guarded(t *attempt, call session.Call) bool {
	switch call.Toolset {
	case wire.ToolsetBuiltin:
		return false
	case wire.ToolsetFunction:
		return a.guardedFunction(call.Name)
	}
	def := t.def.Toolset(call.Toolset)
	return def != nil && (!def.Lazy || call.Name != connectTool(def)) && def.Confirms(call.Name)
}

// hold asks for the approval that a guarded call has not got. It comes before the call is started, because a call that was
// started counts as one that may have run.
func (a *Activities) hold(ctx context.Context, t *attempt, in wire.ToolInput) (out wire.ToolResult, held, repeat bool, err error) {
	if !a.guards(t.def) {
		return out, false, false, nil
	}
	call, err := a.Log.Call(ctx, t.row, in.Call)
	if err != nil {
		return out, true, false, a.failed(ctx, "find call", err)
	}
	if call.Answer != "" || call.Started || !a.guarded(t, call) {
		return out, false, false, nil
	}
	if err := a.within(ctx, t, call); err != nil {
		return out, true, false, err
	}
	_, ok, err := a.approval(ctx, t, call, false)
	if err != nil || ok {
		return out, err != nil, false, err
	}
	hint := fmt.Sprintf("Please approve or reject the tool call %s() by responding with a FunctionResponse with an expected ToolConfirmation payload.", publicName(call.Name))
	out, repeat, err = a.confirm(ctx, t, in, call, auth.Confirmation{Hint: hint}, false)
	return out, true, repeat, err
}

// confirm asks a person to approve a call.
func (a *Activities) confirm(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, c auth.Confirmation, own bool) (out wire.ToolResult, repeat bool, err error) {
	if a.Inputs == nil {
		out, err = a.answer(ctx, t, in, call, failure("The tool needs a person's approval, which cannot be asked for here."))
		return out, false, err
	}
	c.Args = string(call.Args)
	n := needOf(t, call, auth.TypeConfirmation)
	n.Slot = auth.ConfirmationSlot(t.row.Owner, call.ID, own)
	return a.askFor(ctx, t, in, call, question{need: n, confirm: &c})
}

// maxHint bounds what a tool says to a person, in bytes.
const maxHint = 4 << 10

// confirmOwn asks on behalf of the tool's code.
func (a *Activities) confirmOwn(ctx context.Context, t *attempt, in wire.ToolInput, call session.Call, e *tools.ConfirmationRequiredError, scrub *auth.Scrubber) (out wire.ToolResult, repeat bool, err error) {
	c := auth.Confirmation{Hint: strings.ToValidUTF8(scrub.Scrub(e.Hint), "")}
	if len(c.Hint) > maxHint {
		c.Hint = strings.ToValidUTF8(c.Hint[:maxHint], "")
	}
	if e.Payload != nil {
		wrapped, err := plain(map[string]any{"payload": e.Payload})
		payload := encode(scrub.ScrubValue(wrapped["payload"]))
		if err != nil || len(payload) > a.MaxResult {
			out, err = a.answer(ctx, t, in, call, failure("The tool wants a person's approval, but what it offers to fill in is not JSON or too long."))
			return out, false, err
		}
		c.Payload = string(payload)
	}
	return a.confirm(ctx, t, in, call, c, true)
}

// approval returns the newest approval of a call: of the definition's demand, or of its tool's own.
func (a *Activities) approval(ctx context.Context, t *attempt, call session.Call, own bool) (*tools.Confirmation, bool, error) {
	if call.Asking == "" || a.Inputs == nil {
		return nil, false, nil // nobody was asked
	}
	r, ok, err := a.Requests.Answered(ctx, t.row, auth.ConfirmationSlot(t.row.Owner, call.ID, own))
	if err != nil {
		return nil, false, a.failed(ctx, "find approval", err)
	}
	if !ok || r.Call != call.ID || r.Need.Type != auth.TypeConfirmation {
		return nil, false, nil
	}
	c, said, err := a.Inputs.Consent(r)
	switch {
	case err != nil:
		a.Slog.ErrorContext(ctx, "open approval", "session_id", t.row.ID, "request_id", r.ID, "err", err)
		return nil, false, final("approval cannot be read")
	case c.Args != string(call.Args):
		a.Slog.ErrorContext(ctx, "a call is not the one that was approved", "session_id", t.row.ID, "request_id", r.ID, "tool", call.Name)
		return nil, false, final("the call is not the one that was approved")
	}
	out := &tools.Confirmation{Confirmed: true}
	if said.Payload != "" {
		out.Payload = json.RawMessage(said.Payload)
	}
	return out, true, nil
}

// confirming is ADK's adk_request_confirmation call.
func (a *Activities) confirming(q question, id string) (*genai.FunctionCall, error) {
	confirmation := map[string]any{"hint": q.confirm.Hint, "confirmed": false}
	if q.confirm.Payload != "" {
		confirmation["payload"] = json.RawMessage(q.confirm.Payload)
	}
	args, err := plain(map[string]any{
		"originalFunctionCall": map[string]any{"id": q.call, "name": publicName(q.need.Tool), "args": json.RawMessage(q.confirm.Args)},
		"toolConfirmation":     confirmation,
	})
	if err != nil {
		return nil, err
	}
	return &genai.FunctionCall{ID: id, Name: agent.RequestConfirmation, Args: args}, nil
}
