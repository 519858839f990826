package replay_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"tarry/replay"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) //nolint:gosec // below the test's own folder
}

// A folder is checked with all that is below it; each history has its own outcome, and none hides another's.
func TestDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fits, err := os.ReadFile("../workflows/testdata/histories/granted.json")
	require.NoError(t, err)
	h := history(t, "granted")
	scheduled(t, h, "tool/")[0].ActivityType.Name = "tool/mcp/other"
	differs, err := protojson.Marshal(h)
	require.NoError(t, err)
	write(t, filepath.Join(dir, "b", "fits.json"), string(fits))
	write(t, filepath.Join(dir, "a", "differs.json"), string(differs))
	write(t, filepath.Join(dir, "broken.json"), "{")
	write(t, filepath.Join(dir, "readme.md"), "no history")

	all, err := replay.Replayer{}.Dir(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{filepath.Join(dir, "a", "differs.json"), filepath.Join(dir, "b", "fits.json"), filepath.Join(dir, "broken.json")},
		[]string{all[0].Name, all[1].Name, all[2].Name})
	require.True(t, all[0].Differs())
	require.NoError(t, all[1].Err)
	require.Equal(t, 6, all[1].Activities)
	require.ErrorIs(t, all[2].Err, replay.ErrHistory)
	require.Equal(t, "1 of 3 fit, 1 differ, 1 could not be checked", all.String())
	require.ErrorIs(t, all.Err(), replay.ErrMismatch)
	require.ErrorContains(t, all.Err(), "differs.json: event 25: the run called tool mcp/other")
	require.ErrorContains(t, all.Err(), "broken.json: ")

	all, err = replay.Replayer{}.Dir(t.Context(), filepath.Join(dir, "b"))
	require.NoError(t, err)
	require.NoError(t, all.Err())
	require.Equal(t, "1 of 1 fit", all.String())
}

// A check of nothing does not pass.
func TestDirOfNothing(t *testing.T) {
	t.Parallel()
	_, err := replay.Replayer{}.Dir(t.Context(), t.TempDir())
	require.ErrorIs(t, err, replay.ErrHistory)
	_, err = replay.Replayer{}.Dir(t.Context(), filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
