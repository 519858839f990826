package e2e_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/store/storetest"
)

// TestNoSecretLeaks runs logins, a refresh, a denial, failures of the provider and a tool that echoes its token, at log
// level debug, and looks for everything secret in everything that is kept or was answered (invariant I1; P24, P36, T11).
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	o := single(call("leak") + call("whoami") + text("ok"))
	o.mcp = demo.MCPConfig{LeakTool: true}
	w := newWorld(t, o)
	keep := &recorder{next: http.DefaultTransport}
	w.provider.SetFaults(func(f *demo.Faults) { f.TokenError = "server_error"; f.TokenFailures = 1 })
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	_, _ = w.tryLogin(link) // fails at the provider
	w.provider.SetFaults(func(f *demo.Faults) { f.TokenError = ""; f.TokenFailures = 0 })
	w.login(w.waiting(r))
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	w.provider.RevokeAccessTokens()
	second := w.api.start("assistant", "Go on.")
	require.Equal(t, "done", w.finished(second).InvocationStatus)
	w.provider.RevokeAll()
	third := w.api.start("assistant", "And on.")
	_, err := demo.NewBrowser().Deny(t.Context(), w.waiting(third), "alice", "alice-password")
	require.NoError(t, err)
	w.finished(third)

	kept := map[string][]byte{}
	for _, run := range []runHandle{r, second, third} {
		kept["history of "+run.id] = run.history()
		require.Equal(t, http.StatusOK, w.api.call("PATCH", "/apps/assistant/users/user/memory", map[string]any{"sessionId": run.id}, nil))
		require.Equal(t, http.StatusOK, w.api.call("POST", run.path("/artifacts"), map[string]any{"filename": "a.txt", "artifact": map[string]any{"text": "x"}}, nil))
		for _, of := range []string{"", "/events", "/status", "/artifacts", "/artifacts/a.txt", "/artifacts/a.txt/versions/metadata"} {
			kept["GET "+run.path(of)] = keep.get(t, w.URL()+run.path(of))
		}
		traces := []string{"/dev/apps/assistant/debug/trace/session/" + run.id}
		for _, e := range run.events() {
			traces = append(traces, "/dev/apps/assistant/debug/trace/"+e.ID, "/dev"+run.path("/events/"+e.ID+"/graph"))
		}
		for _, path := range traces {
			kept["GET "+path] = keep.get(t, w.URL()+path)
		}
	}
	for _, path := range []string{"/runs?user=user&all=true", "/logins?user=user&all=true", "/list-apps?detailed=true", "/apps/assistant/app-info", "/dev/apps/assistant/build_graph", "/dev/apps/assistant/build_graph_image", "/audit?user=user", "/accounts?user=user", "/apps/assistant/users/user/accounts"} {
		kept["GET "+path] = keep.get(t, w.URL()+path)
	}
	require.NoError(t, w.Stop(stack.All()...))
	maps.Copy(kept, w.stored())
	secrets := w.provider.Secrets().All()
	require.NotEmpty(t, secrets)
	for where, body := range kept {
		require.False(t, bytes.Contains(body, []byte(demo.DefaultMark)), "the canary's mark stands in %s: …%s…", where, around(body, demo.DefaultMark))
		for _, secret := range secrets {
			for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
				require.False(t, bytes.Contains(body, []byte(form)), "a secret stands in %s", where)
			}
		}
	}
	require.Greater(t, len(kept), 12)
}

// stored is all that the processes have written: each file of theirs by its path and, where the store is a PostgreSQL, each table by its name.
func (w *world) stored() map[string][]byte {
	w.t.Helper()
	out := map[string][]byte{}
	if w.database != "" {
		out = storetest.Content(w.t, w.database)
	}
	require.NoError(w.t, filepath.WalkDir(filepath.Join(w.dir, "data"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			out[path], err = os.ReadFile(path) //nolint:gosec // the test's own folder
		}
		return err
	}))
	return out
}

func around(body []byte, mark string) string {
	i := max(bytes.Index(body, []byte(mark)), 0)
	return string(body[max(0, i-80):min(len(body), i+20)])
}

type recorder struct{ next http.RoundTripper }

func (r *recorder) get(tb testing.TB, address string) []byte {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, nil)
	require.NoError(tb, err)
	resp, err := r.next.RoundTrip(req)
	require.NoError(tb, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	return body
}
