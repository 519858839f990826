package process_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/process"
)

func TestUsageListsEveryVariableOnce(t *testing.T) {
	t.Parallel()
	text := process.Usage("Usage: x.", map[string]string{"TARRY_X": "what it means"})
	require.True(t, strings.HasPrefix(text, "Usage: x. Configuration"))
	for _, name := range []string{"TARRY_X", "TARRY_LOG_LEVEL", "TARRY_LOG_FORMAT", "TEMPORAL_ADDRESS"} {
		require.Equal(t, 1, strings.Count(text, "  "+name+" "), name)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	e := process.Environment{Lookup: func(name string) (string, bool) {
		return map[string]string{"A": "1", "EMPTY": ""}[name], name != "NONE"
	}}
	require.Equal(t, "1", e.Get("A", "2"))
	require.Equal(t, "2", e.Get("EMPTY", "2"))
	require.Equal(t, "2", e.Get("NONE", "2"))
}

func TestLoggerNamesTheLevels(t *testing.T) {
	t.Parallel()
	_, err := process.Logger(&strings.Builder{}, "json", "loud")
	require.ErrorContains(t, err, "debug, info, warn, error")
}
