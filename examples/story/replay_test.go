package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/replay"
	"tarry/workflows"
)

// Histories of this agent fit its function: what is under way goes on after an update. One that decides otherwise is found.
func TestRecordedRunsStillReplay(t *testing.T) {
	replayer := replay.Replayer{Agents: workflows.Agents{"story_flow": storyFlow}}
	summary, err := replayer.Dir(t.Context(), "testdata")
	require.NoError(t, err)
	require.NoError(t, summary.Err())
	require.Equal(t, 2, summary.Fit())

	changed := replay.Replayer{Agents: workflows.Agents{"story_flow": func(a *workflows.Agent) error {
		_, err := a.Run("critic_reviser")
		return err
	}}}
	_, err = changed.File(t.Context(), "testdata/history_run1.json")
	require.ErrorIs(t, err, replay.ErrMismatch)
}
