package form_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/form"
)

func TestAnswerSchema(t *testing.T) {
	t.Parallel()
	s, err := form.Compile(json.RawMessage(`{"type":"object","properties":{"days":{"type":"integer"},"why":{"type":"string"}},"required":["days"]}`))
	require.NoError(t, err)
	require.NoError(t, s.Check(map[string]any{"days": 3.0}))
	require.ErrorContains(t, s.Check(map[string]any{}), "days")
	require.ErrorContains(t, s.Check(map[string]any{"days": "x"}), "days")
	long := s.Check(map[string]any{"days": 1.0, "why": map[string]any{"x": strings.Repeat("ü", 40000)}})
	require.Less(t, len(long.Error()), 2000)
}

// A model may have written the schema: it must not lead anywhere, nor in circles, nor keep the server busy.
func TestHostileAnswerSchemas(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"circle":           `{"$ref":"#"}`,
		"circle in a part": `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/b"}}}`,
		"dynamic":          `{"$dynamicAnchor":"x","$dynamicRef":"#x"}`,
		"elsewhere":        `{"$ref":"https://evil.example/s"}`,
		"a file":           `{"$ref":"file:///etc/passwd"}`,
		"doubling":         doubling(),
		"deep":             strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000),
		"large":            `{"description":"` + strings.Repeat("x", 20<<10) + `"}`,
		"pattern":          `{"pattern":"(?!x)"}`,
		"repetition":       `{"pattern":"((a{500}){500}){500}"}`,
		"no object":        `true`,
		"null":             `null`,
		"no JSON":          `{`,
		"wrong type":       `{"type":7}`,
		"draft 3":          `{"$schema":"http://json-schema.org/draft-03/schema#","type":"any"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := form.Compile(json.RawMessage(raw))
			if err == nil { // what only shows with a value is told then
				err = s.Check("x")
				require.Error(t, err)
				return
			}
			require.ErrorIs(t, err, form.ErrAnswerSchema)
			require.Less(t, len(err.Error()), 1500)
		})
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"integer"}`), []byte(`3`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`{}`))
	f.Add([]byte(`{"anyOf":[{"items":{"not":{}}},{"patternProperties":{"a+":{}}}]}`), []byte(`[{"aa":1}]`))
	f.Fuzz(func(_ *testing.T, raw, value []byte) {
		s, err := form.Compile(raw)
		var v any
		if err != nil || json.Unmarshal(value, &v) != nil {
			return
		}
		_ = s.Check(v)
	})
}
