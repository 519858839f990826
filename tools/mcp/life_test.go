package mcp_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/tools"
	"tarry/tools/mcp"
)

func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	s.guard(bearer(only("T1")))
	o := newOpener(t, func(c *mcp.Config) { c.IdleTimeout = 50 * time.Millisecond })
	ts := open(t, o, definition(s.URL), alice(), holding("T1", 1))
	_, err := ts.Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.seen(http.MethodDelete)) == 1 }, 3*time.Second, 5*time.Millisecond)
	require.Equal(t, "Bearer T1", s.seen(http.MethodDelete)[0].Auth)
	_, err = ts.Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Len(t, s.seen("initialize"), 2)
}

func TestCloseEndsRunningCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	o := newOpener(t)
	ts := open(t, o, definition(s.URL), alice(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := ts.Call(t.Context(), tools.Call{ID: "slow-1", Name: "slow"})
		done <- err
	}()
	<-s.entered
	start := time.Now()
	require.NoError(t, o.Close())
	require.Less(t, time.Since(start), 3*time.Second)
	err := <-done
	require.ErrorIs(t, err, mcp.ErrClosed)
	require.ErrorIs(t, err, tools.ErrUnknown)
	require.Equal(t, "slow-1", <-s.canceled)

	_, err = ts.Call(t.Context(), echoCall("c", "x"))
	require.ErrorIs(t, err, mcp.ErrClosed)
	require.ErrorIs(t, err, tools.ErrNotExecuted)
	require.NoError(t, o.Close())
}

func TestCloseDoesNotWaitForADeadServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	o := newOpener(t)
	_, err := open(t, o, definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	s.guard(func(_ http.ResponseWriter, r *http.Request, _ request) bool {
		<-r.Context().Done()
		return true
	})
	start := time.Now()
	require.NoError(t, o.Close())
	require.Less(t, time.Since(start), 4*time.Second)
}

// A server that keeps the stream of an answered call open does not keep ours.
func TestStreamThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	ended := make(chan struct{})
	s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
		if q.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
		return true
	})
	res, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Equal(t, "ok", text(t, res))
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		require.Fail(t, "the stream is still open")
	}
}
