package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	var got string
	served := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.URL.EscapedPath()
	})
	known := func(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, "/page") }
	h := web.Prefix("/api", known)(served)
	for path, want := range map[string]string{
		"/api/run": "/run", "/run": "/run", "/api": "/api", "/apis/run": "/apis/run", "/api/": "/", "/api/api/run": "/api/run",
		"/api/page/x": "/api/page/x", "/api/a%2Fb": "/a%2Fb", "/%61pi/a%2Fb": "/%61pi/a%2Fb", "/API/run": "/API/run",
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, want, got, path)
	}
	web.Prefix("", known)(served).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/run", nil))
	require.Equal(t, "/api/run", got)
}
