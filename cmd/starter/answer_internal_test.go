package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/runs"
)

// A question's answer goes as text, which the server reads as what was asked for; a result says what it is.
func TestAnswersAreSent(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := statusInfo{}
	s.App, s.User, s.Session, s.State = "planner", "user", "s1", "waiting_input"
	s.WaitingFor = []runs.Waiting{{Kind: kindQuestion, Request: "q1"}, {Kind: kindResult, Request: "adk-c"}}
	f.runs = []statusInfo{s}
	for _, c := range []struct {
		args []string
		sent string
		body string
	}{
		{[]string{"q1", "3"}, "/inputs/q1", `{"response":"3"}`},
		{[]string{"q1", "--decline"}, "/inputs/q1", `{"decline":true}`},
		{[]string{"adk-c", `{"n":3}`}, "/calls/adk-c/result", `{"response":{"n":3}}`},
		{[]string{"adk-c", "done", "--interim"}, "/calls/adk-c/result", `{"response":"done","interim":true}`},
	} {
		status, _, stderr := starter(t.Context(), map[string]string{"TARRY_SERVER": f.URL}, append([]string{"answer", "s1"}, c.args...)...)
		require.Equal(t, exitDone, status, stderr)
		require.Equal(t, "POST /apps/planner/users/user/sessions/s1"+c.sent, f.requests[len(f.requests)-1])
		require.JSONEq(t, c.body, f.bodies[len(f.bodies)-1])
	}
}
