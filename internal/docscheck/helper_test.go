package docscheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(body)
}

// pages are the Markdown files of the project, as paths below its root.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			path, err = filepath.Rel(root, path)
			out = append(out, filepath.ToSlash(path))
		}
		return err
	}))
	return out
}

// table returns the rows of the first table whose header begins with the given cells.
func table(t *testing.T, page string, header ...string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for line := range strings.Lines(read(t, page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		case !inside && strings.HasPrefix(strings.Join(cells, "|"), strings.Join(header, "|")):
			inside = true
		}
	}
	require.NotEmpty(t, rows, "%s has no table %v", page, header)
	return rows
}

func code(cell string) string { return strings.Trim(cell, "`") }
