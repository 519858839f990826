package process_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/process"
)

func TestHealthy(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
		case "/moved":
			http.Redirect(w, r, "/readyz", http.StatusFound)
		default:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	require.NoError(t, process.Healthy(t.Context(), srv.URL+"/readyz"))
	require.ErrorContains(t, process.Healthy(t.Context(), srv.URL+"/down"), "503")
	require.ErrorContains(t, process.Healthy(t.Context(), srv.URL+"/moved"), "302", "what answers is another")
	srv.Close()
	require.Error(t, process.Healthy(t.Context(), srv.URL+"/readyz"))
}
