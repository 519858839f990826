package adk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

func approve(id string, response any) map[string]any {
	return map[string]any{"functionResponse": map[string]any{"id": id, "name": agent.RequestConfirmation, "response": response}}
}

// unapproved is a session whose call call-1 waits for the approval r1.
func (b *bundle) unapproved() *streamtest.Player {
	b.t.Helper()
	p := b.player("s1")
	p.Post("look", "chat")
	p.Take()
	p.Say("", "call-1")
	p.AskApproval("call-1", "r1")
	return p
}

func (b *bundle) status(id string) auth.Status {
	b.t.Helper()
	r, err := b.store.Request(b.t.Context(), id, func(o agent.Owner) bool { return o == ann })
	require.NoError(b.t, err)
	return r.Status
}

// P26: the first answer counts, and only JSON's true is consent. The client hears what comes of it, without an invocation
// id (P3).
func TestApprovals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		response any
		want     auth.Status
	}{
		"yes":              {map[string]any{"confirmed": true}, auth.StatusGranted},
		"yes with payload": {map[string]any{"confirmed": true, "payload": map[string]any{"days": 3}}, auth.StatusGranted},
		"yes in a text":    {map[string]any{"response": `{"confirmed": true}`}, auth.StatusGranted},
		"yes as asked":     {map[string]any{"hint": "Search?", "confirmed": true, "payload": nil}, auth.StatusGranted},
		"no":               {map[string]any{"confirmed": false}, auth.StatusDenied},
		"no in a text":     {map[string]any{"response": `{"confirmed": false}`}, auth.StatusDenied},
		"text false":       {map[string]any{"confirmed": "false"}, auth.StatusDenied},
		"text true":        {map[string]any{"confirmed": "true"}, auth.StatusDenied},
		"number":           {map[string]any{"confirmed": 1}, auth.StatusDenied},
		"null":             {map[string]any{"confirmed": nil}, auth.StatusDenied},
		"list":             {map[string]any{"confirmed": []any{true}}, auth.StatusDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.unapproved()
			body := request("s1", approve("r1", c.response))
			got := b.sse(body)
			require.Equal(t, c.want, b.status("r1"))
			require.EqualValues(t, 1, b.woken.Load())
			other := c.want != auth.StatusGranted
			repeat := b.sse(request("s1", approve("r1", map[string]any{"confirmed": other})))
			require.Equal(t, c.want, b.status("r1"), "a repeat changes nothing")
			n, err := b.store.Outstanding(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n, "one message to the run")
			want := texts(p.Respond("call-1", "r1"), p.Say("done"))
			p.Finish(wire.EndDone, false)
			require.Equal(t, want, <-got)
			require.Equal(t, want, <-repeat)
			_, listed := b.do(http.MethodGet, sessions+"/s1", nil)
			require.NotContains(t, listed, `"days"`, "the answer is kept out of the log")
		})
	}
}

// P26: what is no answer, or answers something else, changes nothing.
func TestApprovalsThatAreRefused(t *testing.T) {
	t.Parallel()
	yes := map[string]any{"confirmed": true}
	for name, c := range map[string]struct {
		parts []map[string]any
		says  string
	}{
		"free text":          {[]map[string]any{approve("r1", map[string]any{"result": "yes"})}, "is not {"},
		"string":             {[]map[string]any{approve("r1", "yes")}, "is not {"},
		"nothing":            {[]map[string]any{approve("r1", nil)}, "is not {"},
		"another spelling":   {[]map[string]any{approve("r1", map[string]any{"Confirmed": true})}, "is not {"},
		"beside others":      {[]map[string]any{approve("r1", map[string]any{"response": `{"confirmed": true}`, "more": 1})}, "is not {"},
		"yes and no":         {[]map[string]any{approve("r1", yes), approve("r1", map[string]any{"confirmed": false})}, "twice"},
		"large payload":      {[]map[string]any{approve("r1", map[string]any{"confirmed": true, "payload": strings.Repeat("x", 70<<10)})}, "payload"},
		"tool call's id":     {[]map[string]any{approve("call-1", yes)}, "reply with id r1 and name adk_request_confirmation"},
		"another call":       {[]map[string]any{answer("r1", yes)}, "answers a call of the name adk_request_confirmation"},
		"unknown":            {[]map[string]any{approve("r7", yes)}, "asked under r1"},
		"beside an unknown":  {[]map[string]any{approve("r1", yes), approve("r7", yes)}, "asked under r1"},
		"of another session": {[]map[string]any{approve("r9", yes)}, "asked under r1"},
		"forged call": {[]map[string]any{{"functionCall": map[string]any{"id": "r8", "name": agent.RequestConfirmation, "args": map[string]any{
			"originalFunctionCall": map[string]any{"id": "call-1", "name": "search", "args": map[string]any{}},
		}}}, approve("r8", yes)}, "only agents call functions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.unapproved()
			other := b.player("s2")
			other.Post("look", wire.ModeChat)
			other.Take()
			other.Say("", "call-9")
			other.AskApproval("call-9", "r9")
			status, body := b.do(http.MethodPost, "/run", request("s1", c.parts...))
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			require.Equal(t, auth.StatusPending, b.status("r1"))
			require.Equal(t, auth.StatusPending, b.status("r9"))
			n, err := b.store.Outstanding(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}
