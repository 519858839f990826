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

// A schema of a few kilobytes and an answer of a few more, neither of them odd by itself, could keep a server busy for
// minutes: each is within its bounds, and what they make together is refused.
func TestAnswersThatTakeTooLongToCheck(t *testing.T) {
	t.Parallel()
	numbers := make([]any, 30_000)
	for i := range numbers {
		numbers[i] = 1.0
	}
	names := map[string]any{}
	for i := range 6000 {
		names[fmt.Sprint("a", i)] = 1.0
	}
	all := func(n int, part string) string {
		return `[` + strings.Repeat(part+",", n-1) + part + `]`
	}
	for name, tc := range map[string]struct {
		schema string
		value  any
	}{
		"parts":      {`{"items":{"allOf":` + all(5000, `{}`) + `}}`, numbers},
		"constants":  {`{"items":{"enum":` + all(2000, `[[2]]`) + `}}`, numbers},
		"patterns":   {`{"allOf":` + all(400, `{"pattern":"(.*a){300}"}`) + `}`, strings.Repeat("a", 60_000)},
		"names":      {`{"unevaluatedProperties":false,"allOf":` + all(300, `{"patternProperties":{"(.*a){300}|.":{}}}`) + `}`, names},
		"properties": {`{"propertyNames":{"allOf":` + all(400, `{"pattern":"(.*a){300}|."}`) + `}}`, names},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := form.Compile(json.RawMessage(tc.schema))
			require.NoError(t, err)
			began := time.Now()
			require.ErrorContains(t, s.Check(tc.value), "too large")
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

// What a person may well answer is checked.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	s, err := form.Compile(json.RawMessage(`{"type":"array","items":{"type":"object","required":["id","mail"],"properties":{
		"id":{"type":"integer","minimum":1},"mail":{"type":"string","pattern":"^[^@ ]+@[^@ ]+\\.[a-z]{2,}$"},"kind":{"enum":["a","b"]}}}}`))
	require.NoError(t, err)
	rows := make([]any, 1200)
	for i := range rows {
		rows[i] = map[string]any{"id": float64(i + 1), "mail": fmt.Sprintf("person%d@mail.example", i), "kind": "a"}
	}
	require.NoError(t, s.Check(rows))
	rows[7] = map[string]any{"id": 1.0, "mail": "nobody", "kind": "a"}
	require.ErrorContains(t, s.Check(rows), "pattern")
}
