package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
	"tarry/replay"
)

func example(t *testing.T) options {
	t.Helper()
	o := options{agents: map[string]string{}}
	for _, name := range []string{"root_agent.yaml", "planner.yaml", "reviewer.yaml"} {
		body, err := os.ReadFile(filepath.Join("../examples/planner", name))
		require.NoError(t, err)
		o.agents["planner/"+name] = string(body)
	}
	script, err := os.ReadFile("../examples/planner/script.yaml")
	require.NoError(t, err)
	o.script = string(script)
	return o
}

// waiting waits until the run waits for its login, and returns the link.
func (w *world) waiting(r runHandle) string {
	w.t.Helper()
	var link string
	w.eventually("the run does not wait", func() bool {
		s := r.status()
		if !strings.HasPrefix(s.State, "waiting_") || len(s.WaitingFor) == 0 {
			return false
		}
		link = s.WaitingFor[0].Link
		return true
	})
	return link
}

func (w *world) finished(r runHandle) runStatus {
	w.t.Helper()
	var s runStatus
	w.eventually("the run does not end", func() bool {
		s = r.status()
		return s.InvocationStatus != "" && s.InvocationStatus != "queued" && s.InvocationStatus != "running"
	})
	return s
}

// The main job (pitfalls P2, P12, P16, P33): the whole tree waits for one login, through kill -9 of everything, and the
// login lands while no worker runs.
func TestJobWaitsThroughKillsAndFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, example(t))
	r := w.api.start("planner", "Plan the next release.")
	link := w.waiting(r)
	require.Zero(t, r.status().ModelCalls)

	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	require.Equal(t, link, w.waiting(r))

	require.NoError(t, w.Kill(stack.Worker))
	page := w.login(link)
	require.Contains(t, page.Title, "Connected")
	require.NoError(t, w.Start(t.Context(), stack.Worker))

	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Contains(t, s.Answer, "REL-103")
	require.Equal(t, 1, w.provider.Counts().Approvals)
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])
	require.Len(t, w.mcp.Calls("create_plan"), 2)
	_, err := replay.Reader(t.Context(), bytes.NewReader(r.history()))
	require.NoError(t, err)
}
