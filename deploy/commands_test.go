package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	composeSection = regexp.MustCompile(`(?s)\n## Running with compose\n(.*?)\n## `)
	shellBlock     = regexp.MustCompile("(?s)```sh\n(.*?)```")
	inlineCompose  = regexp.MustCompile("`(docker compose [^`]+)`")
)

// The commands of the page on operations name files, services and commands that are there.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	all := readFiles(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	require.NoError(t, err)
	section := composeSection.FindStringSubmatch(string(page))
	require.NotNil(t, section)
	compose, err := parseCompose(all["docker-compose.yml"], parseEnv(all["deploy/demo.env"]))
	require.NoError(t, err)
	known := buildPrograms(t)
	var lines []string
	for _, block := range shellBlock.FindAllStringSubmatch(section[1], -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	for _, m := range inlineCompose.FindAllStringSubmatch(section[1], -1) {
		lines = append(lines, m[1])
	}
	require.Greater(t, len(lines), 8)
	for _, line := range lines {
		checkCommand(t, line, all, compose, known)
	}
}

func checkCommand(t *testing.T, line string, all files, compose *composeFile, known programs) {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(strings.ReplaceAll(line, `"Plan the next release."`, "task"))
	if words[0] != "docker" {
		require.Contains(t, all, words[0], line)
		return
	}
	words = words[2:]
	if words[0] == "--env-file" {
		require.Contains(t, all, words[1], line)
		words = words[2:]
	}
	verb, rest := words[0], []string{}
	for i, word := range words[1:] {
		switch {
		case word == "--scale":
			service, _, _ := strings.Cut(words[i+2], "=")
			require.Contains(t, compose.Services, service, line)
		case !strings.HasPrefix(word, "--") && !strings.Contains(word, "="):
			rest = append(rest, word)
		}
	}
	switch verb {
	case "build", "ps":
		require.Empty(t, rest, line)
	case "up":
		for _, service := range rest {
			require.Contains(t, compose.Services, service, line)
		}
	case "exec":
		require.Contains(t, compose.Services, rest[0], line)
	case "run":
		require.Contains(t, compose.Services, rest[0], line)
		require.Empty(t, known.starter(t, rest[1:2]), line)
	case "cp":
		service, path, _ := strings.Cut(rest[0], ":")
		_, there := mounted(compose.Services[service], filepath.Dir(path))
		require.True(t, there, line)
	default:
		require.Fail(t, "not a command of Compose: "+line)
	}
}
