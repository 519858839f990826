package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/stream"
)

func TestCursor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]stream.Cursor{
		"0":                {},
		"57":               {Seq: 57},
		"57.3":             {Seq: 57, Partial: 3},
		"57~d~e-1":         {Seq: 57, Request: "d", Invocations: []string{"e-1"}},
		"0~~e-1":           {Invocations: []string{"e-1"}},
		"57.3~d~e-1~e-2.x": {Seq: 57, Partial: 3, Request: "d", Invocations: []string{"e-1", "e-2.x"}},
	} {
		got, err := stream.ParseCursor(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{
		"", "x", "-1", "+1", "01", " 1", "1.", "1.x", "1.-2", "1.2.3", "1~", "1~d", "1~d~", "1~d~e-1~", "~d~e-1", "9223372036854775808",
		"1~d" + strings.Repeat("~e", 9), "1~d~" + strings.Repeat("e", 2000),
	} {
		_, err := stream.ParseCursor(text)
		require.ErrorIs(t, err, stream.ErrCursor, text)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("57.3~d~e-1~e-2")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := stream.ParseCursor(text)
		if err == nil && (c.Partial > 0 || !strings.Contains(strings.SplitN(text, "~", 2)[0], ".")) && c.String() != text {
			t.Errorf("%q reads as %v", text, c)
		}
	})
}
