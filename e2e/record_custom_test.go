package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/replay"
)

// The example of a worker of one's own: a Go agent, a Go tool that needs a login, a model of its own, beside Tarry's server.
// With -update its history becomes the example's fixture.
func TestCustomWorker(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "reports")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir, build.Env = "../examples/custom", append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	reports := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), demo.DefaultMark) {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = rw.Write([]byte(`{"title":"spring","text":"Sales rose."}`))
	}))
	t.Cleanup(reports.Close)
	w := newWorld(t, single(text("unused")))
	w.provider.AddClient(demo.Client{
		ID: "reports-cli", AuthMethod: demo.AuthNone,
		RedirectURIs: []string{w.URL() + oauth.CallbackPath(strings.TrimSuffix(w.provider.TokenURL(), "/token"))},
	})
	require.NoError(t, w.Kill(stack.Worker))
	worker := exec.CommandContext(context.WithoutCancel(t.Context()), binary)
	worker.Env = []string{
		"HOME=" + w.dir, "TEMPORAL_ADDRESS=" + w.Addr(stack.Temporal), "TARRY_DATABASE_URL=" + w.Database(), "TARRY_DATA_DIR=" + filepath.Join(w.dir, "data"),
		"TARRY_PUBLIC_URL=" + w.URL(), "TARRY_DEV=true", "REPORTS_URL=" + reports.URL, "REPORTS_CLIENT_ID=reports-cli",
		"REPORTS_AUTHORIZE_URL=" + w.provider.AuthorizeURL(), "REPORTS_TOKEN_URL=" + w.provider.TokenURL(),
	}
	var log bytes.Buffer
	worker.Stdout, worker.Stderr = &log, &log
	require.NoError(t, worker.Start())
	t.Cleanup(func() {
		_ = worker.Process.Signal(os.Interrupt)
		require.NoError(t, worker.Wait(), "%s", &log)
		require.NotContains(t, log.String(), demo.DefaultMark)
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
	w.eventually("the app is not published", func() bool {
		return len(w.query(`SELECT app FROM apps WHERE app = 'reports'`)) == 1
	})

	r := w.api.start("reports", "What does the report say about spring?")
	page := w.login(w.waiting(r))
	require.Contains(t, page.Title, "Connected", page)
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "spring: Sales rose.", s.Answer)
	_, err = replay.Reader(t.Context(), bytes.NewReader(r.history()))
	require.NoError(t, err)
	if *update {
		temporal, err := client.Dial(client.Options{HostPort: w.Addr(stack.Temporal)})
		require.NoError(t, err)
		defer temporal.Close()
		recording{w, r, temporal}.write("../../../examples/custom/testdata/history")
	}
}
