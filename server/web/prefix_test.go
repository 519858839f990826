package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.EscapedPath())
	})
	known := func(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, "/page") }
	h := web.Prefix("/api", known)(served)
	for path, want := range map[string]string{
		"/api/run": "/run", "/run": "/run", "/api": "/api", "/apis/run": "/apis/run", "/api/": "/", "/api/api/run": "/api/run",
		"/api/page/x": "/api/page/x", "/api/a%2Fb": "/a%2Fb", "/%61pi/a%2Fb": "/%61pi/a%2Fb", "/API/run": "/API/run",
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, want, rec.Body.String(), path)
	}
	rec := httptest.NewRecorder()
	web.Prefix("", known)(served).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/run", nil))
	require.Equal(t, "/api/run", rec.Body.String())
}
