package oauth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
)

// What the page listed last goes with the login, so that a denial is about it and not about what was asked since.
func TestLoginKnowsWhatThePageShowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.needOf(w.mcpWant())
	ask := func(id string, after time.Duration) {
		w.store.ask(auth.Request{ID: id, Owner: ann, Need: n, Agent: "a", Leader: "R", WorkflowID: id, Created: w.now().Add(after)})
	}
	ask("R", 0)
	ask("S", time.Second)
	page, err := w.service.Page(t.Context(), only(ann), "R")
	require.NoError(t, err)
	require.Equal(t, 2, page.Runs)
	require.Equal(t, "S", page.Shown)
	ask("T", time.Minute)
	_, err = w.service.Begin(t.Context(), only(ann), "R", page.Shown)
	require.NoError(t, err)
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, f := range w.store.flows {
		require.Equal(t, "S", f.Shown)
	}
}
