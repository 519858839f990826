package activities_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
)

// What a workflow keeps comes back in parts, byte for byte.
func TestKeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &agent.Agent{Name: "a", Kind: agent.KindLLM, Model: "m/m"})
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	out := must[wire.KeepResult](w, wire.ActivityKeep, "k", wire.KeepInput{Body: body})
	require.NotEmpty(t, out.Kept)
	require.Equal(t, out, must[wire.KeepResult](w, wire.ActivityKeep, "k", wire.KeepInput{Body: body}), "a repeat keeps nothing else")
	var back []byte
	for part := 0; ; part++ {
		got := must[wire.KeptResult](w, wire.ActivityKept, "r", wire.KeptInput{Kept: out.Kept, Part: part})
		require.LessOrEqual(t, len(got.Body), wire.KeptPart)
		if back = append(back, got.Body...); !got.More {
			break
		}
	}
	require.Equal(t, body, back)
}
