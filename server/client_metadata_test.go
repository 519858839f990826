package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry/auth"
	"tarry/engine"
	"tarry/internal/wiring"
	"tarry/server"
	"tarry/server/signin"
)

// Authorization servers sign in nowhere; they get the document, and nothing beside it.
func TestClientMetadataIsServedToAnybody(t *testing.T) {
	t.Parallel()
	public, err := url.Parse("https://tarry.example")
	require.NoError(t, err)
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	parts, err := wiring.Open(t.Context(), wiring.Config{DatabaseURL: auth.NewSecret(filepath.Join(dir, "db")), DataDir: dir, PublicURL: public, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, parts.Close()) })
	temporal, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	steer, err := engine.New(engine.Config{Client: temporal, UserKey: auth.NewSecret(strings.Repeat("k", 32))})
	require.NoError(t, err)
	s, err := server.New(server.Config{Parts: parts, Engine: steer, PublicURL: public, SignIn: signin.None{Log: log}, Log: log})
	require.NoError(t, err)
	get := func(path string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://tarry.example"+path, nil)
		r.RemoteAddr, r.Header = "203.0.113.7:1", header
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	require.NotEqual(t, http.StatusOK, get("/list-apps", http.Header{}).Code, "everything else needs a sign-in")

	w := get("/oauth/client-metadata.json", http.Header{})
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-cache", w.Header().Get("Cache-Control"), "a first login must find its redirect URI in the list")
	require.Empty(t, w.Result().Cookies())
	var d map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
	require.Equal(t, "https://tarry.example/oauth/client-metadata.json", d["client_id"])
	require.Equal(t, "none", d["token_endpoint_auth_method"])
	require.Equal(t, "web", d["application_type"])

	tag := w.Header().Get("ETag")
	require.NotEmpty(t, tag)
	w = get("/oauth/client-metadata.json", http.Header{"If-None-Match": {tag}})
	require.Equal(t, http.StatusNotModified, w.Code)
	require.Empty(t, w.Body.String())
}
