package activities_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/activities"
	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/models"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

// counting is a guarded tool that counts its runs.
func counting(t *testing.T, runs *atomic.Int32, opts ...function.Option) tools.Tool {
	t.Helper()
	return tool(t, "t", func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{"run": runs.Add(1)}, nil
	}, append(opts, function.RequireConfirmation())...)
}

func (w *world) tool(call wire.Call, id, answered string) wire.ToolResult {
	w.t.Helper()
	return must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, id, wire.ToolInput{Call: call.ID, Answered: answered})
}

func (w *world) confirm(request string, confirmed bool, payload string) auth.Request {
	w.t.Helper()
	r, err := w.inputs.Confirm(w.t.Context(), everybody, request, confirmed, auth.Consent{Payload: payload})
	require.NoError(w.t, err)
	return r
}

// A guarded call asks before it is started, in ADK's words, and runs once for its approval, whatever attempt dies where.
func TestGuardedCall(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "ask.before", "ask.after"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			w := newWorld(t, llm("a", functions("t")...), counting(t, &runs))
			call := w.calls("t").Calls[0]
			w.crash(point)
			out := w.tool(call, "t1", "")
			require.True(t, out.Confirmation)
			require.Zero(t, runs.Load())
			e := w.event(out.Asking)
			require.Equal(t, "a", e.Author)
			require.Equal(t, session.KindRequest, e.Kind)
			require.Equal(t, []string{out.Request}, e.LongRunningToolIDs)
			asked := e.Calls()[0]
			require.Equal(t, out.Request, asked.ID)
			require.Equal(t, agent.RequestConfirmation, asked.Name)
			require.Equal(t, map[string]any{
				"originalFunctionCall": map[string]any{"id": call.ID, "name": "t", "args": map[string]any{"n": 1.0}},
				"toolConfirmation": map[string]any{
					"hint":      "Please approve or reject the tool call t() by responding with a FunctionResponse with an expected ToolConfirmation payload.",
					"confirmed": false,
				},
			}, asked.Args)

			w.confirm(out.Request, true, "")
			done := w.tool(call, "t2", out.Request)
			require.Equal(t, map[string]any{"run": 1.0}, w.response(done.Event))
			require.Equal(t, done, w.tool(call, "t3", out.Request), "as after a reset")
			require.Equal(t, int32(1), runs.Load())
		})
	}
}

// An approved call that dies while it runs is not made again, also if its tool is idempotent: the approval was for one run.
func TestApprovalIsForOneRun(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), counting(t, &runs, function.Idempotent()))
	call := w.calls("t").Calls[0]
	out := w.tool(call, "t1", "")
	w.confirm(out.Request, true, "")
	w.crash("tool.ran")
	done := w.tool(call, "t2", out.Request)
	require.Contains(t, w.response(done.Event)["error"], "outcome unknown")
	require.Equal(t, int32(1), runs.Load())
}

// Rejected or too late (pitfalls P26, P32), the tool does not run and the model hears it.
func TestRejectedCall(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		wire.ReasonDenied:  "This tool call is rejected.",
		wire.ReasonExpired: "This tool call is rejected: nobody approved it before the deadline.",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			node := llm("a", functions("t")...)
			if reason == wire.ReasonExpired {
				node.Wait.Deadline = time.Nanosecond
			}
			w := newWorld(t, node, counting(t, &runs))
			call := w.calls("t").Calls[0]
			out := w.tool(call, "t1", "")
			if reason == wire.ReasonDenied {
				require.Equal(t, auth.StatusDenied, w.confirm(out.Request, false, "").Status)
				_, err := w.inputs.Confirm(t.Context(), everybody, out.Request, true, auth.Consent{})
				require.ErrorIs(t, err, inputs.ErrClosed, "the first answer counts")
			} else {
				_, err := w.inputs.Confirm(t.Context(), everybody, out.Request, true, auth.Consent{})
				require.ErrorIs(t, err, inputs.ErrClosed, "too late")
				closed := must[wire.CloseResult](w, wire.ActivityClose, "c", wire.CloseInput{Request: out.Request})
				require.Equal(t, wire.OutcomeExpired, closed.Outcome)
			}
			// A reset makes the call again before the rejection is settled: nobody is asked twice.
			var again wire.ToolResult
			require.NoError(t, w.do(wire.ToolPrefix+call.Tool, "t2", many, wire.ToolInput{Call: call.ID}, &again))
			require.True(t, again.Denied)
			require.Equal(t, map[string]any{"error": want}, w.response(again.Event))
			settled := must[wire.SettleResult](w, wire.ActivitySettle, "s", wire.SettleInput{Call: call.ID, Request: out.Request, Reason: reason})
			require.Equal(t, again.Event, settled.Event)
			require.Zero(t, runs.Load())
		})
	}
}

// A tool that asks by itself gets what came back, may ask once more, and is not answered by the definition's approval.
func TestToolAsksForApproval(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]function.Option{"alone": nil, "guarded too": {function.RequireConfirmation()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []*tools.Confirmation
			made, err := function.NewCall("t", "A tool.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
				heard = append(heard, c.Confirmation)
				switch {
				case c.Confirmation == nil:
					return nil, &tools.ConfirmationRequiredError{Hint: "How many days?", Payload: map[string]any{"days": 0}}
				case string(c.Confirmation.Payload) == `{"days":30}`:
					return nil, &tools.ConfirmationRequiredError{Hint: "So many?"}
				}
				return map[string]any{"result": "booked"}, nil
			}, opts...)
			require.NoError(t, err)
			w := newWorld(t, llm("a", functions("t")...), made)
			call := w.calls("t").Calls[0]
			answered := ""
			if len(opts) > 0 {
				answered = w.tool(call, "t0", "").Request
				require.Empty(t, heard)
				w.confirm(answered, true, `{"days":1}`)
			}
			first := w.tool(call, "t1", answered)
			require.Equal(t, map[string]any{"hint": "How many days?", "confirmed": false, "payload": map[string]any{"days": 0.0}},
				w.event(first.Asking).Calls()[0].Args["toolConfirmation"])
			w.confirm(first.Request, true, `{"days":30}`)
			second := w.tool(call, "t2", first.Request)
			require.True(t, second.Confirmation)
			require.NotEqual(t, first.Request, second.Request)
			require.Equal(t, map[string]any{"hint": "So many?", "confirmed": false}, w.event(second.Asking).Calls()[0].Args["toolConfirmation"])
			w.confirm(second.Request, true, "")
			done := w.tool(call, "t3", second.Request)
			require.Equal(t, map[string]any{"result": "booked"}, w.response(done.Event))
			require.Equal(t, &tools.Confirmation{Confirmed: true}, heard[len(heard)-1])
		})
	}
}

// What a person has said stands in no event and in no table in the clear.
func TestConsentIsSealed(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), counting(t, &runs))
	out := w.tool(w.calls("t").Calls[0], "t1", "")
	w.confirm(out.Request, true, `"canary-secret-payload"`)
	r, err := w.store.Request(t.Context(), out.Request, everybody)
	require.NoError(t, err)
	body, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(body)+w.log.String(), "canary-secret")
	_, said, err := w.inputs.Consent(r)
	require.NoError(t, err)
	require.JSONEq(t, `"canary-secret-payload"`, said.Payload)
}

// send is a server's tool, under the name that its toolset's prefix gives it.
type send struct{ describes }

func (send) Declaration() tools.Declaration {
	return tools.Declaration{Name: "mail_send", Idempotent: true}
}

// Of a toolset, all tools are guarded or those that are named, under their names at the server. A login that is needed too
// is asked for after the approval, and takes nothing from it.
func TestGuardedToolset(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		guard func(m *agent.MCPToolset)
		held  bool
	}{
		"none":       {func(*agent.MCPToolset) {}, false},
		"all":        {func(m *agent.MCPToolset) { m.RequireConfirmation = true }, true},
		"named":      {func(m *agent.MCPToolset) { m.Confirm = []string{"send"} }, true},
		"another is": {func(m *agent.MCPToolset) { m.Confirm = []string{"read"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := withToolset()
			root.Tools[0].MCP.NamePrefix = "mail"
			tc.guard(root.Tools[0].MCP)
			w := newWorld(t, root)
			w.toolsets["m"] = tarrytest.NewToolset(send{})
			w.toolsets["m"].OpenListing = true
			in := listing(w)
			listed := must[wire.ListResult](w, wire.ActivityListTools, "l", in)
			w.model = func(context.Context, *models.Request) (*models.Response, error) { return calling("mail_send"), nil }
			call := must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "a", Heads: in.Heads, Lists: []string{listed.List}}).Calls[0]
			out := w.tool(call, "t1", "")
			require.Equal(t, tc.held, out.Confirmation)
			if tc.held {
				w.confirm(out.Request, true, "")
				out = w.tool(call, "t2", out.Request)
				require.False(t, out.Confirmation)
			}
			require.NotEmpty(t, out.Request, "a login")
			w.credentials.Grant("m", token)
			done := w.tool(call, "t3", out.Request)
			require.NotEmpty(t, done.Event)
			require.Len(t, w.toolsets["m"].Calls(), 1)
		})
	}
}

// The tool that connects a lazy toolset has no effect to be approved.
func TestConnectingIsNotGuarded(t *testing.T) {
	t.Parallel()
	root := withToolset()
	root.Tools[0].MCP.Lazy, root.Tools[0].MCP.RequireConfirmation = true, true
	w := newWorld(t, root)
	w.toolsets["m"] = tarrytest.NewToolset(describes("searches"))
	in := listing(w)
	listed := must[wire.ListResult](w, wire.ActivityListTools, "l", in)
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return calling("m_connect"), nil }
	call := must[wire.ModelResult](w, wire.ActivityCallModel, "m2", wire.ModelInput{Agent: "a", Heads: in.Heads, Lists: []string{listed.List}}).Calls[0]
	require.False(t, w.tool(call, "t1", "").Confirmation)
}

// altered opens approvals of a call with other arguments.
type altered struct{ activities.Inputs }

func (a altered) Consent(r auth.Request) (auth.Confirmation, auth.Consent, error) {
	c, said, err := a.Inputs.Consent(r)
	c.Args = `{"n":2}`
	return c, said, err
}

// What was shown is what runs: an approval of other arguments is none.
func TestApprovalOfOtherArguments(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), counting(t, &runs))
	call := w.calls("t").Calls[0]
	out := w.tool(call, "t1", "")
	w.confirm(out.Request, true, "")
	w.acts.Inputs = altered{w.inputs}
	err := w.do(wire.ToolPrefix+call.Tool, "t2", many, wire.ToolInput{Call: call.ID, Answered: out.Request}, nil)
	require.Equal(t, wire.ErrorFinal, failure(t, err).Type())
	require.Zero(t, runs.Load())
}

// A worker that cannot ask anybody does not run what must be approved.
func TestNobodyCanApprove(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	w := newWorld(t, llm("a", functions("t")...), counting(t, &runs))
	w.acts.Inputs = nil
	done := w.tool(w.calls("t").Calls[0], "t1", "")
	require.Contains(t, w.response(done.Event)["error"], "approval, which cannot be asked for")
	require.Zero(t, runs.Load())
}

// A guarded call of an agent behind a tool is asked for by that agent, where only it and clients see it, with its exact
// arguments; the approval of one call is none for its twin, and is used once, also after a reset or in another run.
func TestApprovalBehindATool(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	inner := llm("inner", functions("t")...)
	w := newWorld(t, llm("a", agent.Tool{Agent: &agent.AgentTool{Agent: inner}}), counting(t, &runs))
	outer, e := w.forged("inner", map[string]any{"request": "x"})
	scope := outer.Calls[0].ID
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return calling("t", "t"), nil }
	twins := must[wire.ModelResult](w, wire.ActivityCallModel, "inner", wire.ModelInput{Agent: "inner", Heads: []string{e.ID}, Scope: scope}).Calls
	require.Len(t, twins, 2)
	first, second := w.tool(twins[0], "t1", ""), w.tool(twins[1], "t2", "")
	require.NotEqual(t, first.Request, second.Request)
	asked := w.event(first.Asking)
	require.Equal(t, "inner", asked.Author)
	require.Equal(t, scope, asked.IsolationScope)
	require.Equal(t, map[string]any{"id": twins[0].ID, "name": "t", "args": map[string]any{"n": 1.0}}, asked.Calls()[0].Args["originalFunctionCall"])

	w.confirm(first.Request, true, "")
	require.Equal(t, second, w.tool(twins[1], "t3", first.Request), "the twin is still asked for")
	require.Zero(t, runs.Load())
	done := w.tool(twins[0], "t4", first.Request)
	require.Equal(t, done, w.tool(twins[0], "t5", first.Request), "as after a reset")
	require.Equal(t, scope, w.event(done.Event).IsolationScope)
	require.Equal(t, int32(1), runs.Load())
}
