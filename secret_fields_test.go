package tarry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretNames are names of fields that hold what must not be printed.
var secretNames = regexp.MustCompile(`(?i)(api|form|user|private|access|signing|session)_?key$|^keys?$|secret$|password$|(id|access|refresh|^)_?token$|^(access|refresh)$|verifier$|nonce$|^(user|device)?_?code$|cookie$|assertion$|env$|environ$`)

// plainFields have such a name, and print nothing that is secret, or have to be text for a moment.
var plainFields = map[string]string{
	"agent Auth.Key":                         "the name credential_key",
	"agent MissingKeyError.Key":              "the name of an entry of a definition",
	"auth Input.Key":                         "the name of a field of a form",
	"auth Need.Key":                          "the name credential_key",
	"auth/keys sealed.Password":              "JSON on its way into the vault and out of it",
	"auth/oauth Callback.Code":               "the query of a request, on its way to where the code is sealed",
	"auth/oauth Flow.ClientSecret":           "sealed",
	"auth/oauth Flow.Code":                   "sealed",
	"auth/oauth Flow.Nonce":                  "sealed",
	"auth/oauth Flow.Verifier":               "sealed",
	"auth/oauth Grant.Access":                "sealed",
	"auth/oauth Grant.ClientSecret":          "sealed",
	"auth/oauth Grant.IDToken":               "sealed",
	"auth/oauth Grant.Refresh":               "sealed",
	"auth/oauth ProviderError.Code":          "an error code of OAuth, from a fixed list",
	"auth/oauth Registration.Secret":         "sealed",
	"auth/oauth answer.Code":                 "JSON on its way into the vault and out of it",
	"auth/oauth checkNonce.Nonce":            "JSON of a token that is being checked",
	"auth/oauth deviceSecrets.DeviceCode":    "JSON on its way into the vault and out of it",
	"auth/oauth deviceSecrets.UserCode":      "JSON on its way into the vault and out of it",
	"auth/oauth parked.Access":               "JSON on its way into the vault and out of it",
	"auth/oauth parked.ClientSecret":         "JSON on its way into the vault and out of it",
	"auth/oauth parked.IDToken":              "JSON on its way into the vault and out of it",
	"auth/oauth parked.Refresh":              "JSON on its way into the vault and out of it",
	"auth/oauth parseRegistration.Secret":    "JSON of an answer, which is made a secret where it is read",
	"auth/vault Place.Key":                   "the key of a row",
	"auth/vault Row.Key":                     "the key of a row",
	"cmd/starter link.Key":                   "the name credential_key",
	"internal/stack Config.Env":              "of tests and of the demo",
	"internal/stack Config.WorkerEnv":        "of tests and of the demo",
	"server claim.Nonce":                     "JSON of a request, which is made a hash where it is read",
	"server parked.Code":                     "JSON on its way into the vault and out of it",
	"server parked.Cookie":                   "JSON on its way into the vault and out of it",
	"server/connect view.Code":               "for the template of a page that shows it",
	"server/runs Entry.Secret":               "JSON of a request, which is made a secret where it is read",
	"server/signin attempt.Nonce":            "JSON on its way into the sealed cookie and out of it",
	"server/signin attempt.Verifier":         "JSON on its way into the sealed cookie and out of it",
	"server/signin authorizationAnswer.code": "the query of a request",
	"server/adk event.code":                  "the errorCode of an event",
	"tarrytest Wait.Key":                     "the name credential_key",
	"tools/mcp request.token":                "a progress token of MCP, a number",
	"wire ReadInput.Key":                     "a name in the store",
	"workflows limit.key":                    "a name",
}

// No struct has a field that is called a secret and would be printed: such a field is an auth.Secret, or stands in the list
// with the reason why it is none.
func TestFieldsThatAreSecretsHaveItsType(t *testing.T) {
	t.Parallel()
	plain := []string{"string", "[]byte", "[]string", "map[string]string", "*string"}
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			// The demo's provider and the drivers of suites have made-up secrets.
			if slices.Contains([]string{"internal/demo", "conformance", "e2e", "examples", "devserver", "bench", "interop", ".git", "bin"}, filepath.ToSlash(path)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		holder := ""
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				holder = n.Name.Name
			case *ast.FuncDecl:
				holder = n.Name.Name
			case *ast.StructType:
				for _, field := range n.Fields.List {
					for _, name := range field.Names {
						if secretNames.MatchString(name.Name) && slices.Contains(plain, typeText(field.Type)) {
							found[filepath.ToSlash(filepath.Dir(path))+" "+holder+"."+name.Name] = true
						}
					}
				}
			}
			return true
		})
		return nil
	}))
	for field := range found {
		require.NotEmpty(t, plainFields[field], "%s would be printed: make it an auth.Secret, or list it with the reason", field)
	}
	for field := range plainFields {
		require.True(t, found[field], "%s is no such field any more", field)
	}
}

func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	case *ast.ArrayType:
		return "[]" + typeText(e.Elt)
	case *ast.MapType:
		return "map[" + typeText(e.Key) + "]" + typeText(e.Value)
	}
	return ""
}
