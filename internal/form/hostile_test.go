package form_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/form"
)

// doubling is a property whose check by JSON Schema's own rules takes 2^40 steps.
func doubling() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return `{"type":"object","properties":{"a":{"type":"string","$ref":"#/$defs/d0","$defs":{` + b.String() + `"d40":{"minLength":1}}}}}`
}

// Somebody else's schema decides what a person may fill in, and no more: it must not keep the process busy, lead it
// elsewhere or end it.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"reference to itself":  `{"type":"object","properties":{"a":{"type":"string","$ref":"#"}}}`,
		"dynamic reference":    `{"type":"object","properties":{"a":{"type":"string","$dynamicRef":"#x","$dynamicAnchor":"x"}}}`,
		"doubling":             doubling(),
		"reference to http":    `{"type":"object","properties":{"a":{"type":"string","$ref":"http://127.0.0.1:1/s"}}}`,
		"reference to a file":  `{"type":"object","properties":{"a":{"type":"string","$ref":"file:///etc/passwd"}}}`,
		"pattern of a browser": `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)b"}}}`,
		"slow pattern":         `{"type":"object","properties":{"a":{"type":"string","pattern":"^(b+)+$"}}}`,
		"deep":                 `{"type":"object","properties":{"a":{"type":"string","not":` + strings.Repeat(`{"not":`, 5001) + `{}` + strings.Repeat(`}`, 5001) + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan error, 1)
			go func() {
				_, err := form.Read(json.RawMessage(schema), func(string) []string { return []string{"b"} })
				done <- err
			}()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(20 * time.Second):
				t.Fatal("still busy")
			}
		})
	}
}
