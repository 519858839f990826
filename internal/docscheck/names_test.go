package docscheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test is named as package.TestName, the package as its folder below the root.
var testName = regexp.MustCompile(`\b([a-z0-9_]+(?:/[a-z0-9_]+)*)\.(Test[A-Z]\w*)`)

// Every test that a page names exists in the package that it names.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	known := map[string][]string{}
	named := 0
	for _, page := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			named++
			dir := m[1]
			if _, ok := known[dir]; !ok {
				known[dir] = testsIn(t, dir)
			}
			require.Contains(t, known[dir], m[2], "%s names %s", page, m[0])
		}
	}
	require.NotZero(t, named)
}

func testsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				out = append(out, f.Name.Name)
			}
		}
	}
	return out
}

// The pitfalls that must be covered, of ADK (P), of MCP logins (M) and of agents on Temporal (T).
func required() []string {
	return strings.Fields(`P1 P2 P8 P9 P11 P12 P13 P16 P17 P18 P19 P22 P23 P24 P25 P27 P30 P33 P36
		M17 M18 M19 M22 T11 T13 T14 T15 T17 T19 T28`)
}

func TestPitfallsAreCovered(t *testing.T) {
	t.Parallel()
	var covered []string
	for _, kind := range []string{"ADK", "MCP", "Temporal"} {
		for _, row := range table(t, "docs/pitfalls.md", "id", kind) {
			require.Len(t, row, 3, "row %s", row[0])
			require.Regexp(t, testName, row[2], "pitfall %s names no test", row[0])
			require.NotContains(t, covered, row[0], "two rows")
			covered = append(covered, row[0])
		}
	}
	for _, id := range required() {
		require.Contains(t, covered, id)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links between pages lead to files that are there.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			u, err := url.Parse(m[1])
			require.NoError(t, err, page)
			if u.Scheme != "" || u.Path == "" {
				continue
			}
			_, err = os.Stat(filepath.Join(root, filepath.Dir(page), u.Path))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}

// Every record of a decision is in the list, and has the same parts.
func TestDecisions(t *testing.T) {
	t.Parallel()
	list := read(t, "docs/decisions/README.md")
	files, err := filepath.Glob(filepath.Join(root, "docs/decisions/0*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		name := filepath.Base(file)
		require.Contains(t, list, "("+name+")")
		body := read(t, "docs/decisions/"+name)
		require.True(t, strings.HasPrefix(body, "# "+name[:4]+" "), name)
		at := -1
		for _, part := range []string{"**Context.**", "**Decision.**", "**Risks.**", "**Alternatives.**"} {
			next := strings.Index(body, part)
			require.Greater(t, next, at, "%s: %s", name, part)
			at = next
		}
		require.Equal(t, i+1, number(t, name[:4]), "numbers have no gap")
	}
	require.True(t, slices.IsSorted(files))
}
