package adk_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
	"tarry/wire"
)

// A session that goes away under a run that is waited for is no failure of the server's: deleted, deleted and made anew, or
// closed before the message's turn.
func TestSessionGoesUnderARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		goes   func(b *bundle) error
		status int
		says   string
	}{
		"deleted": {func(b *bundle) error { return b.store.Delete(b.t.Context(), ann, "s1") }, http.StatusNotFound, "session s1"},
		"made anew": {func(b *bundle) error {
			if err := b.store.Delete(b.t.Context(), ann, "s1"); err != nil {
				return err
			}
			return b.store.Create(b.t.Context(), session.Session{Owner: ann, ID: "s1", WorkflowID: starter{}.WorkflowID(ann, "s1")})
		}, http.StatusNotFound, "session s1"},
		"closed": {func(b *bundle) error {
			p := b.player("s1")
			p.Take()
			p.Finish(wire.EndCancelled, true)
			return nil
		}, http.StatusConflict, "was cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
			if name == "closed" {
				b.player("s1").Post("before", wire.ModeChat)
			}
			b.handler.Wake = func() { require.NoError(t, c.goes(b)) } // after the message was stored, before it is followed
			status, body := b.do(http.MethodPost, "/run", say("s1", "look"))
			require.Equal(t, c.status, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
		})
	}
}
