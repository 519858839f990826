//go:build interop

package interop_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// front is the server's address on the internet: TLS, with a certificate of an authority of its own.
type front struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
	asked  atomic.Int64
}

func startFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(f.target.Load()) }}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// authority writes the certificate that clients have to trust.
func (f *front) authority(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	require.NoError(t, os.WriteFile(path, body, 0o600))
	return path
}

// Client ID Metadata Documents: the URL of our document is the client id, the provider reads it there, and nobody is
// registered. Refreshes work without a secret.
func TestClientIDMetadataDocument(t *testing.T) {
	t.Parallel()
	f := startFront(t)
	as := startProvider(t, providerOptions{life: shortLife, authority: f.authority(t)})
	p := protect(t, as, startEverything(t, streamable, "0"), "/mcp")
	document := f.URL + "/oauth/client-metadata.json"
	o := single(calls(long)+calls(echo)+says("done"), toolset{url: p.url(), tools: []string{"echo", "trigger-long-running-operation"}})
	o.env = []string{"TARRY_CLIENT_METADATA_URL=" + document}
	o.prepare = func(server string) {
		target, err := url.Parse(server)
		require.NoError(t, err)
		f.target.Store(target)
	}
	w := newWorld(t, o)
	r := w.start("agent", "Go.")
	w.login(r.waiting())
	r.finished()
	require.Equal(t, 1, r.logins())

	seen := as.seen()
	require.Empty(t, seen.Registered)
	require.Empty(t, seen.Errors)
	require.Equal(t, []string{document}, seen.Documents)
	require.Equal(t, int64(1), f.asked.Load())
	require.GreaterOrEqual(t, seen.granted("refresh_token"), 1)
	require.Equal(t, document, p.calls("echo")[0].Claims.ClientID)

	var doc map[string]any
	require.Equal(t, http.StatusOK, w.call("GET", "/oauth/client-metadata.json", nil, &doc))
	require.Equal(t, document, doc["client_id"])
	body, err := json.Marshal(doc)
	require.NoError(t, err)
	require.NotContains(t, string(body), "secret")
}
