package tarry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
)

// The password of the database may lie in a file, as secrets of containers do.
func TestDatabasePasswordFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, body string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		return path
	}
	password := file("password", "p@ss/w:rd %?\r\n")
	for name, tc := range map[string]struct {
		url, file, want, problem string
	}{
		"with a file":         {url: "postgres://tarry@db:5432/tarry?sslmode=disable", file: password, want: "postgres://tarry:p%40ss%2Fw%3Ard%20%25%3F@db:5432/tarry?sslmode=disable"},
		"without":             {url: "postgres://tarry@db/tarry", want: "postgres://tarry@db/tarry"},
		"twice":               {url: "postgres://tarry:hunter2@db/tarry", file: password, problem: "has a password already"},
		"no user":             {url: "postgres://db/tarry", file: password, problem: "such as postgres://USER@HOST/DATABASE"},
		"SQLite":              {url: "/var/lib/tarry.db", file: password, problem: "such as postgres://USER@HOST/DATABASE"},
		"no such file":        {url: "postgres://tarry@db/tarry", file: filepath.Join(dir, "none"), problem: "none cannot be read: no such file"},
		"empty":               {url: "postgres://tarry@db/tarry", file: file("empty", "\n"), problem: "empty is empty"},
		"what is not a URL":   {url: "postgres://tarry@db:hunter2/tarry", file: password, problem: "such as postgres://USER@HOST/DATABASE"},
		"a folder for a file": {url: "postgres://tarry@db/tarry", file: dir, problem: "cannot be read: is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := tarry.ConfigFromEnv(lookup(map[string]string{"TARRY_DATABASE_URL": tc.url, "TARRY_DATABASE_PASSWORD_FILE": tc.file}))
			if tc.problem == "" {
				require.NoError(t, err)
				require.Equal(t, tc.want, c.DatabaseURL.Reveal())
				return
			}
			require.ErrorContains(t, err, "TARRY_DATABASE_PASSWORD_FILE: ")
			require.ErrorContains(t, err, tc.problem)
			require.NotContains(t, err.Error(), "hunter2", "the URL is a secret")
		})
	}
}

// So may keys of models.
func TestModelKeyFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("the key\n"), 0o600))
	c, err := tarry.ConfigFromEnv(lookup(map[string]string{"OPENAI_API_KEY_FILE": file, "GEMINI_API_KEY_FILE": file}))
	require.NoError(t, err)
	require.Equal(t, "the key", c.OpenAIKey.Reveal())
	require.Equal(t, "the key", c.GeminiKey.Reveal())
	_, err = tarry.ConfigFromEnv(lookup(map[string]string{"OPENAI_API_KEY_FILE": file, "OPENAI_API_KEY": "another", "GEMINI_API_KEY_FILE": "/none"}))
	require.ErrorContains(t, err, "OPENAI_API_KEY_FILE: OPENAI_API_KEY is set as well")
	require.ErrorContains(t, err, "GEMINI_API_KEY_FILE: /none cannot be read: no such file")
}
