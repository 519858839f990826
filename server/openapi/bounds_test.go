package openapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/routes"
)

// bounds says for numbers of the document which constants they are.
func bounds() map[string][]string {
	return map[string][]string{
		// What a body may have at most, by operation: the smaller of what the handler reads and what the server takes of any.
		"post /run":                              {"server/adk maxBody", "server maxMessage"},
		"post /run_sse":                          {"server/adk maxBody", "server maxMessage"},
		"post /apps/{app}/users/{user}/sessions": {"server/adk maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}":                         {"server/adk maxBody", "server maxBody"},
		"patch /apps/{app}/users/{user}/sessions/{session}":                        {"server/adk maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/artifacts":               {"server/adk maxBody", "server maxFile"},
		"patch /apps/{app}/users/{user}/memory":                                    {"server/adk maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/runs":                                       {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/cancel":                  {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/confirmations/{request}": {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/inputs/{request}":        {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/keys/{request}":          {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/sessions/{session}/calls/{call}/result":     {"server/runs maxBody", "server maxBody"},
		"post /apps/{app}/users/{user}/logins/claim":                               {"server maxClaim"},
		"post /connect":         {"server/connect maxForm"},
		"post /connect/answer":  {"server/connect maxAnswer"},
		"post /connect/account": {"server/connect maxForm"},
		"post /accounts":        {"server/accounts maxForm"},
		"post /signout":         {"server/signin maxForm"},
		// Schemas and parameters.
		"components schemas NewArtifact properties filename maxLength":                                       {"session MaxArtifactName"},
		"components schemas NewSession properties events maxItems":                                           {"server/adk maxImported"},
		"components schemas Message properties parts maxItems":                                               {"server/adk maxParts"},
		"components schemas FrameId maxLength":                                                               {"server/stream maxCursor"},
		"components parameters ArtifactName schema maxLength":                                                {"session MaxArtifactName"},
		"components schemas Id maxLength":                                                                    {"agent MaxIDLength"},
		"components parameters Limit schema maximum":                                                         {"server/web MostRows"},
		"components schemas Accounts properties accounts maxItems":                                           {"server/web MostRows"},
		"components schemas AuditLog properties entries maxItems":                                            {"server/web MostRows"},
		"paths /connect get parameters 0 schema maxLength":                                                   {"server/connect maxID"},
		"paths /oauth/callback/{digest} get parameters 0 schema maxLength":                                   {"server/connect maxDigest"},
		"paths /oauth/callback/{digest} get parameters 1 schema maxLength":                                   {"server/connect maxState"},
		"paths /oauth/callback/{digest} get parameters 2 schema maxLength":                                   {"server/connect maxCode"},
		"paths /apps/{app}/users/{user}/sessions get responses 200 content application/json schema maxItems": {"server/adk maxSessions"},
	}
}

// texts are numbers within descriptions.
func texts() map[string]string {
	return map[string]string{
		"paths /apps/{app}/users/{user}/sessions get description: The newest %d,":                              "server/adk maxSessions",
		"paths /apps/{app}/users/{user}/sessions get description: left out beyond %d bytes":                    "server/adk maxStates",
		"paths /apps/{app}/users/{user}/sessions/{session}/events get description: a list of at most %d bytes": "server/runs maxPage",
		"components schemas Answer properties response description: At most %d bytes":                          "auth/inputs MaxAnswer",
		"components schemas Result properties response description: At most %d bytes":                          "auth/inputs MaxResult",
		"components schemas ToolConfirmation properties payload description: At most %d bytes":                 "server/adk maxPayload",
	}
}

func TestBoundsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	_, tree := document(t)
	source := routes.In("../..")
	least := func(names ...string) (out int64) {
		for _, name := range names {
			folder, constant, _ := strings.Cut(name, " ")
			v, err := source.Constant(folder, constant)
			require.NoError(t, err)
			if n := v.(int64); out == 0 || n < out {
				out = n
			}
		}
		return out
	}
	for place, constants := range bounds() {
		if method, path, _ := strings.Cut(place, " "); strings.HasPrefix(path, "/") && method != "paths" {
			place = "paths " + path + " " + method + " requestBody x-max-bytes"
		}
		require.EqualValues(t, least(constants...), lookUp(t, tree, place), place)
	}
	for place, constant := range texts() {
		at, text, _ := strings.Cut(place, ": ")
		require.Contains(t, lookUp(t, tree, at), fmt.Sprintf(text, least(constant)), at)
	}
}

// Whoever writes a bound says here which constant it is.
func TestAllBodiesAreBound(t *testing.T) {
	t.Parallel()
	_, tree := document(t)
	known := bounds()
	for path, item := range tree["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if op, ok := operation.(map[string]any); ok && op["requestBody"] != nil && known[method+" "+path] == nil {
				t.Errorf("bounds has no line for the body of %s %s", method, path)
			}
		}
	}
}

// lookUp follows words through the document, and references.
func lookUp(t *testing.T, tree map[string]any, place string) any {
	t.Helper()
	var v any = tree
	for _, word := range strings.Fields(place) {
		switch whole := v.(type) {
		case map[string]any:
			if ref, ok := whole["$ref"].(string); ok {
				whole, _ = lookUp(t, tree, strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", " ")).(map[string]any)
			}
			v = whole[word]
		case []any:
			var i int
			_, err := fmt.Sscan(word, &i)
			require.NoError(t, err, place)
			v = whole[i]
		default:
			t.Fatalf("the document has no %s", place)
		}
	}
	return v
}

// Files stay of a size that can be read.
func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("api/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.LessOrEqual(t, len(regexp.MustCompile(`\n`).FindAll(text, -1)), 500, "%s: put an area into a file of its own", name)
	}
}
