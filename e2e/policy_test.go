package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// T20: a message ends the invocation that waits and is answered next; the old link resumes nothing.
func TestMessageInterrupts(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + "- when: {contains: never mind}\n  text: Never mind, then.\n")
	o.agents["assistant/root_agent.yaml"] = assistant("tarry: {on_message: interrupt}\n")
	w := newWorld(t, o)
	r := w.api.startAs("user", "assistant", map[string]string{"task": "Which tickets are there?", "mode": "chat"})
	link := w.waiting(r)
	browser, address := w.toCallback(link) // the person is at the provider
	first := r.status().Invocation
	w.api.startAs("user", "assistant", map[string]string{"task": "Never mind.", "mode": "chat", "session": r.id})
	w.idle(r, "Never mind, then.")
	require.Equal(t, []string{"superseded", "done"}, w.query(`SELECT status FROM invocations ORDER BY created`))
	events := r.events()
	w.checkAnswers(events, "interrupted")
	require.Contains(t, responses(events, "list_tickets")[0].Response["error"], "new message")
	var codes []string
	for _, e := range events {
		if e.ErrorCode != "" {
			codes = append(codes, e.ErrorCode)
			require.Equal(t, first, e.InvocationID)
		}
	}
	require.Equal(t, []string{"SUPERSEDED"}, codes)

	require.NotContains(t, w.visit(browser, address).Title, "Connected")
	require.GreaterOrEqual(t, w.visit(demo.NewBrowser(), link).Status, 400)
	require.Zero(t, w.provider.Counts().Token["authorization_code"])
	require.Len(t, r.events(), len(events))
	require.Len(t, w.modelCalls(), 2)
	require.Empty(t, w.mcp.Calls("list_tickets"))
}

// A person is reminded while nobody comes, also by a worker that was killed meanwhile, and at the deadline the invocation ends
// with an event that says why.
func TestRemindersAndADeadlineThatFails(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("never said"))
	o.agents["assistant/root_agent.yaml"] = assistant("tarry: {deadline: 15s, on_deadline: fail, remind: 1s}\n")
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	w.waiting(r)
	reminders := func() int {
		var s struct {
			WaitingFor []struct {
				Reminders    int
				LastReminded string `json:"last_reminded"`
			} `json:"waiting_for"`
		}
		w.api.call("GET", r.path("/status"), nil, &s)
		if len(s.WaitingFor) == 0 || s.WaitingFor[0].LastReminded == "" {
			return 0
		}
		return s.WaitingFor[0].Reminders
	}
	w.eventually("nobody is reminded", func() bool { return reminders() > 0 })
	require.NoError(t, w.Kill(stack.Worker))
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	before := reminders()
	w.eventually("nobody is reminded any more", func() bool { return reminders() > before })

	s := w.finished(r)
	require.Equal(t, "failed", s.InvocationStatus)
	require.True(t, s.Denied)
	events := r.events()
	w.checkAnswers(events, "expired")
	require.Contains(t, responses(events, "list_tickets")[0].Response["error"], "Nobody logged in")
	last := events[len(events)-1]
	require.Equal(t, "DEADLINE_EXPIRED", last.ErrorCode)
	require.Equal(t, "Nobody logged in for list_tickets before the deadline, and the agent's on_deadline is fail.", last.ErrorMessage)
	numbers := 0
	for _, e := range events {
		if reminder, ok := e.CustomMetadata["tarry_reminder"].(map[string]any); ok {
			numbers++
			require.EqualValues(t, numbers, reminder["number"])
			require.Equal(t, []string{reminder["request"].(string)}, asks(events))
		}
	}
	require.Greater(t, numbers, 1)
	require.Len(t, asks(events), 1, "nobody is asked anew")
	require.Len(t, w.modelCalls(), 1)
}
