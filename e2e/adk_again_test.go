package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/store/storetest"
)

// A session that was deleted can be made anew under the same id, in the middle of a run too: it is empty, and works.
func TestADKSessionMadeAnew(t *testing.T) { madeAnew(t, "") }

func TestADKSessionMadeAnewOnPostgres(t *testing.T) { madeAnew(t, storetest.Schema(t)) }

func madeAnew(t *testing.T, database string) {
	t.Helper()
	t.Parallel()
	o := single(call("list_tickets") + text("Four tickets."))
	o.database = database
	w := newWorld(t, o)
	s := w.adkSession("ann")
	w.login(authURI(t, s.say("Which tickets?")))
	require.Equal(t, "Four tickets.", w.finished(s.runHandle).Answer)
	for range 4 {
		require.Equal(t, http.StatusOK, s.c.call("DELETE", s.path(""), nil, nil))
		status, said := s.c.raw("POST", "/run", s.body(nil, map[string]string{"text": "Anybody?"}))
		require.Equal(t, http.StatusNotFound, status, said)
		require.Equal(t, http.StatusOK, s.c.call("POST", s.path(""), nil, nil))
		require.Empty(t, s.events())
		status, said = s.c.raw("POST", "/run", s.body(nil, map[string]string{"text": "Which tickets?"}))
		require.Equal(t, http.StatusOK, status, said)
		require.Contains(t, said, "Four tickets.")
		require.Len(t, s.events(), 4)
	}
}
