package docscheck_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent/yaml"
)

const mcpPage = "docs/mcp.md"

// Every definition on the page on MCP servers is one that a worker takes.
func TestDefinitionsAreValid(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile("(?s)```yaml\n(name: .*?)```").FindAllStringSubmatch(read(t, mcpPage)+read(t, "docs/agents.md"), -1)
	require.NotEmpty(t, found)
	for _, block := range found {
		dir := filepath.Join(t.TempDir(), "app")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, yaml.RootFile), []byte(block[1]), 0o600))
		for _, other := range regexp.MustCompile(`config_path: (\w+)\.yaml`).FindAllStringSubmatch(block[1], -1) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, other[1]+".yaml"), []byte("name: "+other[1]+"\nmodel: gemini/gemini-2.5-flash\n"), 0o600))
		}
		_, err := yaml.LoadApp(dir, yaml.Options{})
		require.NoError(t, err, block[1])
	}
}

// The log messages that the page quotes are those of the code, and its keys are those that files may have.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	literals := stringLiterals(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range table(t, mcpPage, "what happens", "run", "model", "log") {
		for _, m := range quoted.FindAllStringSubmatch(row[3], -1) {
			known := false
			for text := range literals {
				known = known || strings.HasPrefix(text, m[1])
			}
			require.True(t, known, m[1])
		}
	}
	for _, row := range table(t, mcpPage, "key", "says") {
		key, _, _ := strings.Cut(code(row[0]), ":")
		require.Contains(t, literals, key)
	}
}
