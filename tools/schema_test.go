package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/tools"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"$ref":"#/$defs/n"}},"required":["city"],"$defs":{"n":{"type":"integer"}}}`)
	s, err := tools.CompileSchema(raw)
	require.NoError(t, err)
	require.True(t, s.Object())
	require.Equal(t, raw, s.Raw())
	require.NoError(t, s.Check(map[string]any{"city": "Rome", "days": 3.0}))
	require.ErrorContains(t, s.Check(map[string]any{}), "city")
	require.ErrorContains(t, s.Check(map[string]any{"city": "Rome", "days": "three"}), "days")
	require.Error(t, s.Check("Rome"))
	long := s.Check(map[string]any{"city": "Rome", "days": strings.Repeat("ü", 4000)})
	require.Less(t, len(long.Error()), 3000)

	list, err := tools.CompileSchema(json.RawMessage(`{"type":"array","items":{"type":"string"}}`))
	require.NoError(t, err)
	require.False(t, list.Object())
	for _, bad := range []string{``, `7`, `{"type":7}`, `{"$ref":"https://elsewhere.example/schema"}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`} {
		_, err := tools.CompileSchema(json.RawMessage(bad))
		require.ErrorContains(t, err, "not a JSON Schema", bad)
	}
}
