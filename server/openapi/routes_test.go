package openapi_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/routes"
	"tarry/server/openapi/openapitest"
)

// folders are those of the server's packages that mount routes.
func folders() []string {
	return []string{"server", "server/accounts", "server/adk", "server/connect", "server/openapi", "server/runs", "server/signin", "server/webui"}
}

// What handlers mount is described, and nothing else is.
func TestAllRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	mounted, err := routes.In("../..").All(folders()...)
	require.NoError(t, err)
	var want []string
	for _, r := range mounted {
		if r.Pattern != "/" { // where the API's routes hang
			want = append(want, r.Pattern)
		}
	}
	_, tree := document(t)
	found := map[string]bool{} // several paths may be served by one pattern
	for path, item := range tree["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" && !strings.HasPrefix(method, "x-") {
				found[strings.ToUpper(method)+" "+openapitest.Pattern(tree, path, method)] = true
			}
		}
	}
	got := slices.Collect(maps.Keys(found))
	require.ElementsMatch(t, want, got, "describe what is new in server/openapi/api, and remove what is gone")
	require.Greater(t, len(got), 30)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		require.Contains(t, strings.Join(got, "\n"), method)
	}
}
