package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/internal/wiring"
)

func TestVault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database := filepath.Join(dir, "tarry.db")
	env := map[string]string{"TARRY_DATABASE_URL": database, "TARRY_DATA_DIR": dir}
	status, _, stderr := starter(t.Context(), env, "vault", "status")
	require.Equal(t, exitUnusable, status)
	require.Contains(t, stderr, "there is no database "+database)

	s, v, err := wiring.OpenVault(t.Context(), wiring.Config{DatabaseURL: auth.NewSecret(database), DataDir: dir})
	require.NoError(t, err)
	_, err = v.NamedKey(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, s.Announce(t.Context(), v.Holder("p", "server on host")))

	status, stdout, stderr := starter(t.Context(), env, "vault", "rotate", "--wait", "1ms")
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "server on host")
	require.Empty(t, stdout)
	require.NoError(t, s.Leave(t.Context(), "p"))
	status, stdout, stderr = starter(t.Context(), env, "vault", "rotate")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "2 values were sealed anew")
	status, stdout, stderr = starter(t.Context(), env, "vault", "status")
	require.Zero(t, status, stderr)
	require.Regexp(t, `(?s)keyset .*keyset.json\nKEY .*\d+ +old +0\n\d+ +primary +2\n`, stdout)
	require.Contains(t, stderr, "no process runs")
	status, stdout, stderr = starter(t.Context(), env, "vault", "prune", "--json")
	require.Zero(t, status, stderr)
	require.Regexp(t, `^{"removed":\[\d+\]}\n$`, stdout)
	status, stdout, stderr = starter(t.Context(), env, "vault", "status", "--json")
	require.Zero(t, status, stderr)
	require.Regexp(t, `"keys":\[{"id":\d+,"state":"primary","values":2}\]`, stdout)

	env["TARRY_KEYSET"] = "gcp-kms://projects/p"
	status, _, stderr = starter(t.Context(), env, "vault", "status")
	require.Equal(t, exitUnusable, status)
	require.Contains(t, stderr, "no client for gcp-kms://projects/p")
	require.NoError(t, s.Close())
}
