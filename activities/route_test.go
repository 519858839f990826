package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/session"
	"tarry/wire"
)

// forged makes the model of agent a answer with one call of its own invention.
func (w *world) forged(name string, args map[string]any) (wire.ModelResult, *session.Record) {
	w.t.Helper()
	took := w.says("Go.")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		call := &genai.FunctionCall{ID: "adk-chosen", Name: name, Args: args}
		return &models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			{FunctionResponse: &genai.FunctionResponse{ID: "adk-chosen", Name: name, Response: map[string]any{"forged": true}}}, {FunctionCall: call},
		}}}, nil
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m"+took.Event, wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	return out, w.event(out.Event)
}

// A model hands over only to those that it was offered, whatever its arguments look like, and what is checked is what counts.
func TestForgedTransfers(t *testing.T) {
	t.Parallel()
	a := llm("a", agent.Tool{Agent: &agent.AgentTool{Agent: llm("tool")}})
	child := llm("child")
	child.SubAgents = []*agent.Agent{llm("grandchild")}
	a.SubAgents = []*agent.Agent{child}
	for name, tc := range map[string]struct {
		args map[string]any
		to   string
	}{
		"as offered":         {map[string]any{"agent_name": "child"}, "child"},
		"other spellings":    {map[string]any{"agent_name": "child", "AGENT_NAME": 7, "Agent_Name": "grandchild"}, "child"},
		"another spelling":   {map[string]any{"Agent_Name": "child"}, ""},
		"no text":            {map[string]any{"agent_name": []any{"child"}}, ""},
		"nothing":            {nil, ""},
		"itself":             {map[string]any{"agent_name": "a"}, ""},
		"not offered":        {map[string]any{"agent_name": "grandchild"}, ""},
		"an agent as a tool": {map[string]any{"agent_name": "tool"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, a)
			out, _ := w.forged(agent.TransferToAgent, tc.args)
			require.Len(t, out.Calls, 1)
			call := out.Calls[0]
			require.Equal(t, wire.Call{ID: call.ID, Answer: call.Answer, Transfer: tc.to}, call)
			require.NotEmpty(t, call.Answer)
			require.Equal(t, tc.to, w.event(call.Answer).Actions.TransferToAgent)
			_, wrong := w.response(call.Answer)["error"]
			require.Equal(t, tc.to == "", wrong)
		})
	}
}

// A model that makes up a question to a person, or an id, gets neither: nothing is opened, and clients see no call that they
// could answer.
func TestForgedQuestions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{agent.RequestInput, agent.RequestConfirmation, agent.RequestCredential, agent.TransferToAgent, "set_model_response", "nobody"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a", agent.Tool{Agent: &agent.AgentTool{Agent: llm("tool")}}))
			out, e := w.forged(name, map[string]any{"interruptId": "adk-chosen", "message": "Password?", "agent_name": "tool"})
			require.Len(t, out.Calls, 1)
			require.NotEmpty(t, out.Calls[0].Answer)
			require.Empty(t, out.Calls[0].Tool+out.Calls[0].Agent+out.Calls[0].Transfer)
			require.Empty(t, e.LongRunningToolIDs)
			require.Empty(t, e.Responses(), "a model answers no call")
			require.NotEqual(t, "adk-chosen", e.Calls()[0].ID)
			require.False(t, agent.Reserved(e.Calls()[0].Name))
			require.Contains(t, w.response(out.Calls[0].Answer)["error"], "There is no tool")
			open, err := w.store.Requests(t.Context(), w.row.Owner, true, 10)
			require.NoError(t, err)
			require.Empty(t, open)
		})
	}
}

// An agent behind a tool is called in its own form only, and never with more than its call says.
func TestForgedCallsOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", agent.Tool{Agent: &agent.AgentTool{Agent: llm("tool")}}))
	for _, args := range []map[string]any{nil, {"request": 1.0}, {"Request": "x"}, {"request": nil}} {
		out, _ := w.forged("tool", args)
		require.Empty(t, out.Calls[0].Agent)
		require.Contains(t, w.response(out.Calls[0].Answer)["error"], "request")
	}
	out, e := w.forged("tool", map[string]any{"request": "x", "isolationScope": "other", "agent_name": "a"})
	require.Equal(t, wire.Call{ID: out.Calls[0].ID, Agent: "tool"}, out.Calls[0])
	require.Empty(t, e.IsolationScope)
}
