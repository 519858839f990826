package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// A run that was terminated at Temporal can no longer say how it ended; cancelling it settles what it left open.
func TestTerminatedRunIsSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	c, err := temporal.Dial(temporal.Options{HostPort: w.Addr(stack.Temporal)})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.TerminateWorkflow(t.Context(), w.query(`SELECT workflow_id FROM sessions`)[0], "", "by an operator"))
	require.Equal(t, http.StatusAccepted, w.api.call("POST", r.path("/cancel"), nil, nil))
	require.Equal(t, "failed", w.finished(r).InvocationStatus)
	require.Equal(t, "Request cancelled", w.visit(demo.NewBrowser(), link).Title)
}

// A chat whose run was terminated in the middle of a call goes on with its next message.
func TestChatGoesOnAfterTermination(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	r := w.api.startAs("user", "assistant", map[string]string{"task": "Go.", "mode": "chat"})
	link := w.waiting(r)
	c, err := temporal.Dial(temporal.Options{HostPort: w.Addr(stack.Temporal)})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.TerminateWorkflow(t.Context(), w.query(`SELECT workflow_id FROM sessions`)[0], "", "by an operator"))
	w.api.startAs("user", "assistant", map[string]string{"task": "Again.", "mode": "chat", "session": r.id})
	w.eventually("the second message does not ask anew", func() bool { return len(asks(r.events())) == 2 })
	require.Equal(t, "Request cancelled", w.visit(demo.NewBrowser(), link).Title)
	w.login(w.waiting(r))
	w.idle(r, "ok")
	w.checkAnswers(r.events(), "after termination")
}
