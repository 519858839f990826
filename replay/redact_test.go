package replay_test

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"tarry/replay"
)

// fixtures are the histories of package workflows.
func fixtures(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../workflows/testdata/histories/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		names = append(names, filepath.Base(file[:len(file)-len(".json")]))
	}
	return names
}

// text is a history's JSON with its payloads decoded.
func text(t *testing.T, h *historypb.History) string {
	t.Helper()
	body, err := protojson.Marshal(h)
	require.NoError(t, err)
	return regexp.MustCompile(`"data": ?"[^"]*"`).ReplaceAllStringFunc(string(body), func(field string) string {
		var encoded struct{ Data string }
		require.NoError(t, json.Unmarshal([]byte("{"+field+"}"), &encoded))
		plain, err := base64.StdEncoding.DecodeString(encoded.Data)
		require.NoError(t, err)
		return string(plain)
	})
}

// Every recorded history replays once it is redacted, and nothing that identifies a run, its person or a host is left.
func TestRedact(t *testing.T) {
	t.Parallel()
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	telling := regexp.MustCompile(uuid + `|adk-[a-z2-7]{16}|[0-9a-f]{8}-mcp|/[a-z2-7]{16}/|\d+@[^"]*|host:|"identity": ?"[^"]+"|20[0-9]{2}-[0-9]{2}-[0-9]{2}T`)
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, name)
			before := proto.Clone(h)
			out, err := replay.Redact(h)
			require.NoError(t, err)
			require.True(t, proto.Equal(before, h), "what is given stays as it is")
			raw, redacted := text(t, h), text(t, out[0])
			found := telling.FindAllString(raw, -1)
			require.NotEmpty(t, found)
			for _, id := range found {
				require.NotContains(t, redacted, id)
			}
			want, err := replay.History(t.Context(), h)
			require.NoError(t, err)
			got, err := replay.History(t.Context(), out[0])
			require.NoError(t, err)
			require.Equal(t, want, got)
			again, err := replay.Redact(h)
			require.NoError(t, err)
			require.True(t, proto.Equal(out[0], again[0]), "the same each time")
		})
	}
}
