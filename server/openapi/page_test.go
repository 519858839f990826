package openapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page that people read lists what the document says, in its words.
func TestPageListsRoutes(t *testing.T) {
	t.Parallel()
	_, tree := document(t)
	page, err := os.ReadFile("../../docs/http.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /\\S*)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = row[2]
	}
	for path, item := range tree["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			op, ok := operation.(map[string]any)
			if !ok || method == "parameters" {
				continue
			}
			route := strings.ToUpper(method) + " " + path
			summary, there := listed[route]
			delete(listed, route)
			if there {
				require.Equal(t, op["summary"], summary, route)
				continue
			}
			tag := op["tags"].([]any)[0]
			require.True(t, tag == "Pages" || tag == "ADK" && unused(op), "docs/http.md has no row for %s", route)
		}
	}
	require.Empty(t, listed, "docs/http.md has rows for what there is not")
}

// unused are old forms, and what ADK's development server has and we have not.
func unused(op map[string]any) bool {
	responses := op["responses"].(map[string]any)
	summary := op["summary"].(string)
	return op["deprecated"] == true || responses["501"] != nil || strings.HasPrefix(summary, "A list of ADK") || strings.HasPrefix(summary, "Tests and evaluations")
}
