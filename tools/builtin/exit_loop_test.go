package builtin_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/tools"
	"tarry/tools/builtin"
)

func TestExitLoop(t *testing.T) {
	t.Parallel()
	tool := builtin.ExitLoop()
	require.Equal(t, "exit_loop", tool.Declaration().Name)
	require.Contains(t, tool.Declaration().Description, "only when you are instructed")

	for _, args := range []string{``, `null`, `{}`, `{"reason":"done"}`} {
		res, err := tool.Call(t.Context(), tools.Call{ID: "c1", Name: "exit_loop", Args: json.RawMessage(args)})
		require.NoError(t, err)
		require.True(t, res.Escalate)
		require.True(t, res.SkipSummarization)
		response, err := json.Marshal(res.Response)
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(response))
	}

	_, err := tools.NewRegistry(tool)
	require.NoError(t, err)
}
