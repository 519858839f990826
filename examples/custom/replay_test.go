package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/replay"
)

// A history of this agent, as `starter export` writes it, fits the version of Tarry that the module requires: runs that are
// under way go on after an update.
func TestRecordedRunStillReplays(t *testing.T) {
	result, err := replay.File(t.Context(), "testdata/history.json")
	require.NoError(t, err)
	require.Equal(t, 5, result.Activities) // take, model, tool, tool after the login, model
}
