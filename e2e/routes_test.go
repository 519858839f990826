package e2e_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/routes"
)

// apiRoutes are the patterns of all routes behind the sign-in for APIs, so that none is forgotten.
func apiRoutes(tb testing.TB) (out []string) {
	tb.Helper()
	all, err := routes.In("..").All("server", "server/accounts", "server/adk", "server/runs")
	require.NoError(tb, err)
	method := regexp.MustCompile(`^[A-Z]+ `)
	for _, r := range all {
		switch {
		case !method.MatchString(r.Pattern), r.File == "server/accounts/page.go": // pages have tests of their own
		case r.File == "server/server.go" && r.Mux != "api": // open to all: health, metadata
		default:
			out = append(out, r.Pattern)
		}
	}
	return slices.Compact(out)
}
