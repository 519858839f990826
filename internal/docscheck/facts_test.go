package docscheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
)

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

var (
	usageLine = regexp.MustCompile(`(?m)^  ([A-Z][A-Z_]+) +(.*)$`)
	fallback  = regexp.MustCompile(`\(default (\S+?)[:;,]?[\s)]`)
)

// The table of environment variables has the names and defaults that each binary prints, and no others.
func TestVariables(t *testing.T) {
	t.Parallel()
	documented := map[string]map[string]string{"worker": {}, "server": {}, "starter": {}}
	for _, row := range table(t, "docs/operations.md", "variable", "default", "meaning", "binary") {
		require.Len(t, row, 4)
		for binary := range strings.SplitSeq(row[3], ", ") {
			require.Contains(t, documented, binary, row[0])
			documented[binary][code(row[0])] = code(row[1])
		}
	}
	for name := range tarry.Variables() {
		require.Contains(t, documented["worker"], name)
	}
	for _, binary := range []string{"worker", "server"} {
		printed := map[string]string{}
		for _, m := range usageLine.FindAllStringSubmatch(help(t, binary), -1) {
			printed[m[1]] = ""
			if d := fallback.FindStringSubmatch(m[2]); d != nil {
				printed[m[1]] = d[1]
			}
		}
		require.NotEmpty(t, printed)
		for name, value := range printed {
			require.Contains(t, documented[binary], name, "%s prints it", binary)
			if value != "" {
				require.Equal(t, value, documented[binary][name], "%s, default of %s", binary, name)
			}
		}
		for name := range documented[binary] {
			require.Contains(t, printed, name, "%s does not print it", binary)
		}
	}
	require.Contains(t, help(t, "starter"), "TARRY_SERVER")
	require.Contains(t, help(t, "starter"), documented["starter"]["TARRY_SERVER"])
}

// help is what a binary prints with -h.
func help(t *testing.T, binary string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/"+binary, "-h") //nolint:gosec // one of our own
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "TARRY_SERVER=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

var requirement = regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`)

// Every module that go.mod requires directly has its line, and no other has.
func TestDependenciesHaveReasons(t *testing.T) {
	t.Parallel()
	var required, explained []string
	for _, m := range requirement.FindAllStringSubmatch(read(t, "go.mod"), -1) { // indirect ones have a comment behind
		required = append(required, m[1])
	}
	for _, row := range table(t, "docs/decisions/0006-dependencies.md", "module", "for") {
		require.NotEmpty(t, row[1])
		explained = append(explained, row[0])
	}
	slices.Sort(required)
	slices.Sort(explained)
	require.Equal(t, required, explained)
}

// The messages that the page on operations quotes are those of the code.
func TestLogMessagesExist(t *testing.T) {
	t.Parallel()
	literals := stringLiterals(t)
	for _, row := range table(t, "docs/operations.md", "message", "from", "says") {
		for message := range strings.SplitSeq(row[0], ", ") {
			require.Contains(t, literals, code(message))
		}
	}
}

func stringLiterals(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "devserver" || d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					out[text] = true
				}
			}
			return true
		})
		return nil
	}))
	return out
}

// Nothing in the repository names a path of the machine it was written on.
func TestPagesNameNoMachine(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		require.NotRegexp(t, `(^|[\s"'(`+"`"+`])/(home|root|work|Users)/`, read(t, page), page)
	}
}
