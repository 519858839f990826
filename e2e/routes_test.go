package e2e_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// apiRoutes reads the patterns of all routes behind the sign-in for APIs out of the source, so that none is forgotten.
func apiRoutes(t testing.TB) (out []string) {
	t.Helper()
	files, err := filepath.Glob("../server/*/*.go")
	require.NoError(t, err)
	files = append(files, "../server/server.go")
	pattern := regexp.MustCompile(`^[A-Z]+ /`)
	pages := regexp.MustCompile(`_test\.go$|/(connect|signin|webui)/|/accounts/page`) // pages have tests of their own
	for _, file := range files {
		if pages.MatchString(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		known := map[string]string{}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if text, ok := textOf(value, known); ok && i < len(n.Names) {
						known[n.Names[i].Name] = text
					}
				}
			case *ast.CallExpr:
				method, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) < 2 || method.Sel.Name != "HandleFunc" && method.Sel.Name != "Handle" {
					return true
				}
				if x, ok := method.X.(*ast.Ident); ok && file == "../server/server.go" && x.Name != "api" {
					return true // open to all: health, metadata
				}
				text, ok := textOf(n.Args[0], known)
				require.True(t, ok, "%s: a pattern that this test cannot read", file)
				if pattern.MatchString(text) {
					out = append(out, text)
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func textOf(e ast.Expr, known map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, token.STRING, 0)), true
		}
	case *ast.Ident:
		text, ok := known[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok1 := textOf(e.X, known)
		right, ok2 := textOf(e.Y, known)
		return left + right, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}
