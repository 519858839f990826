package routes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/routes"
)

// module writes a module of some files.
func module(t *testing.T, files map[string]string) *routes.Source {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return routes.In(root)
}

func TestRoutesOfSource(t *testing.T) {
	t.Parallel()
	s := module(t, map[string]string{
		"a/z.go":        `package a; const Path = prefix + "/z"`,
		"a/mount.go":    "package a\nimport \"tarry/b\"\nconst prefix = \"/a\"\nfunc f(mux M) { const one = Path + \"/{id}\"; mux.HandleFunc(\"GET \"+one, nil); mux.Handle(\"POST \"+b.Path, nil); mux.Handle(\"/\", nil) }",
		"a/a_test.go":   `package a; func g(mux M) { mux.Handle("GET /only/in/a/test", nil) }`,
		"b/b.go":        `package b; const Path = "/b"; const limit = 16 << 10 / 3 * 2 / 8`,
		"c/c.go":        `package c; func f(mux M, path string) { mux.Handle("GET "+path, nil) }`,
		"d/d.go":        `package d; func f(mux M) { const x = "/1"; mux.Handle("GET "+x, nil) }; func g(mux M) { const x = "/2"; mux.Handle("GET "+x, nil) }`,
		"e/e.go":        `package e; func f(api M) { api.HandleFunc("DELETE /e", nil) }`,
		"broken/bad.go": `package`,
	})
	got, err := s.All("a", "e")
	require.NoError(t, err)
	require.Equal(t, []routes.Route{
		{Pattern: "/", File: "a/mount.go", Mux: "mux"},
		{Pattern: "DELETE /e", File: "e/e.go", Mux: "api"},
		{Pattern: "GET /a/z/{id}", File: "a/mount.go", Mux: "mux"},
		{Pattern: "POST /b", File: "a/mount.go", Mux: "mux"},
	}, got)
	for _, folder := range []string{"c", "d", "broken", "missing"} { // nothing is left out in silence
		_, err := s.All(folder)
		require.Error(t, err, folder)
	}
	limit, err := s.Constant("b", "limit")
	require.NoError(t, err)
	require.EqualValues(t, 1365, limit)
	path, err := s.Constant("a", "Path")
	require.NoError(t, err)
	require.Equal(t, "/a/z", path)
	_, err = s.Constant("b", "other")
	require.ErrorContains(t, err, "no constant other")
}
