package process

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadyURL(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/readyz",
		"0.0.0.0:8080":   "http://127.0.0.1:8080/readyz",
		":8080":          "http://127.0.0.1:8080/readyz",
		"[::]:8080":      "http://[::1]:8080/readyz",
		"server:80":      "http://server:80/readyz",
	} {
		got, err := ready(addr)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := ready("8080")
	require.ErrorContains(t, err, "HOST:PORT")
}

func TestHealthArgument(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	var stderr bytes.Buffer
	p := Program{Name: "x", Addr: func(Environment) string { return srv.Listener.Addr().String() }, Run: func(context.Context, Environment) error { panic("not asked for") }}
	e := Environment{Lookup: func(string) (string, bool) { return "", false }}
	require.Equal(t, 1, p.main(t.Context(), []string{"health"}, e, &stderr))
	require.Contains(t, stderr.String(), "x: check health: "+srv.URL+"/readyz answers 404")
	srv.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	stderr.Reset()
	require.Equal(t, 0, p.main(t.Context(), []string{"health"}, e, &stderr), stderr.String())
}
