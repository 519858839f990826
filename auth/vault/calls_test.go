package vault_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sealing = regexp.MustCompile(`(?i)\b(vault|v)\.Seal\(`)

// Whoever seals something new has to list where it lies, or a rotation forgets it: store/sealed.go has the list, and the
// files here are all that may seal.
func TestWhoSeals(t *testing.T) {
	t.Parallel()
	var found []string
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		if d.IsDir() && slices.Contains([]string{"bin", ".git", "devserver", "examples"}, name) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		body, err := os.ReadFile(path) //nolint:gosec // our own sources
		if err == nil && sealing.Match(body) {
			found = append(found, name)
		}
		return err
	}))
	require.Equal(t, []string{
		"auth/inputs/service.go", // requests: what is asked, and the answer
		"auth/keys/enter.go",     // grants of keys and passwords, as oauth seals access tokens
		"auth/oauth/seal.go",     // grants, flows, registrations: their methods Sealed
		"auth/vault/vault.go",    // meta: named keys
		"server/claims.go",       // parked callbacks, which live for minutes
		"server/signin.go",       // cookies, which live for minutes
	}, found)
}
