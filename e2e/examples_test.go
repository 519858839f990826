package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/wire"
)

// An example is a worker of one's own, built from a module of its own and run beside Tarry's server.
type exampleWorker struct {
	w      *world
	binary string
	env    []string
	log    bytes.Buffer
	worker *exec.Cmd
}

// newExample takes the place of Tarry's worker. NAME_AUTHORIZE_URL and the like are set for the client, by prefix.
func newExample(t *testing.T, dir, client, prefix string, service http.Handler) *exampleWorker {
	t.Helper()
	x := &exampleWorker{binary: filepath.Join(t.TempDir(), dir)}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", x.binary, ".") //nolint:gosec // our own program
	build.Dir, build.Env = "../examples/"+dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	guarded := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), demo.DefaultMark) {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		service.ServeHTTP(rw, r)
	}))
	t.Cleanup(guarded.Close)
	x.w = newWorld(t, single(text("unused")))
	x.w.provider.AddClient(demo.Client{
		ID: client, AuthMethod: demo.AuthNone,
		RedirectURIs: []string{x.w.URL() + oauth.CallbackPath(strings.TrimSuffix(x.w.provider.TokenURL(), "/token"))},
	})
	require.NoError(t, x.w.Kill(stack.Worker))
	x.env = []string{
		"HOME=" + x.w.dir, "TEMPORAL_ADDRESS=" + x.w.Addr(stack.Temporal), "TARRY_DATABASE_URL=" + x.w.Database(), "TARRY_DATA_DIR=" + filepath.Join(x.w.dir, "data"),
		"TARRY_PUBLIC_URL=" + x.w.URL(), "TARRY_DEV=true", prefix + "_URL=" + guarded.URL, prefix + "_CLIENT_ID=" + client,
		prefix + "_AUTHORIZE_URL=" + x.w.provider.AuthorizeURL(), prefix + "_TOKEN_URL=" + x.w.provider.TokenURL(),
	}
	x.start(t)
	t.Cleanup(func() {
		_ = x.worker.Process.Signal(os.Interrupt)
		require.NoError(t, x.worker.Wait(), "%s", &x.log)
		require.NotContains(t, x.log.String(), demo.DefaultMark)
		if t.Failed() {
			t.Logf("%s", &x.log)
		}
	})
	return x
}

func (x *exampleWorker) start(t *testing.T) {
	t.Helper()
	x.worker = exec.CommandContext(context.WithoutCancel(t.Context()), x.binary) //nolint:gosec // the same
	x.worker.Env, x.worker.Stdout, x.worker.Stderr = x.env, &x.log, &x.log
	require.NoError(t, x.worker.Start())
}

func (x *exampleWorker) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, x.worker.Process.Kill())
	require.Error(t, x.worker.Wait())
}

// published waits until the worker has made its app known.
func (x *exampleWorker) published(app string) {
	x.w.t.Helper()
	x.w.eventually("the app is not published", func() bool { return len(x.w.query(`SELECT app FROM apps WHERE app = ?`, app)) == 1 })
}

// record makes the history of a run the example's fixture, with -update.
func (x *exampleWorker) record(r runHandle, dir string) {
	x.w.t.Helper()
	if *update {
		recording{w: x.w, run: r, temporal: x.w.temporal(), elsewhere: true}.write("../../../examples/" + dir + "/testdata/history")
	}
}

// The example of a worker of one's own: a Go agent, a Go tool that needs a login, a model of its own, beside Tarry's server.
func TestCustomWorker(t *testing.T) {
	t.Parallel()
	x := newExample(t, "custom", "reports-cli", "REPORTS", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(`{"title":"spring","text":"Sales rose."}`))
	}))
	x.published("reports")
	r := x.w.api.start("reports", "What does the report say about spring?")
	page := x.w.login(x.w.waiting(r))
	require.Contains(t, page.Title, "Connected", page)
	s := x.w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "spring: Sales rose.", s.Answer)
	x.record(r, "custom")
}

// The example of a custom agent: the story flow waits for a login in its middle, moves to another run meanwhile, and the login
// comes while its worker is dead. Nothing is written twice.
func TestStoryFlow(t *testing.T) {
	t.Parallel()
	x := newExample(t, "story", "story-cli", "GUIDES", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("Write of dogs, never of cats."))
	}))
	x.published("story")
	r := x.w.api.start("story", "A story, please.")
	link := x.w.waiting(r)
	temporal := x.w.temporal()
	require.NoError(t, temporal.SignalWorkflow(t.Context(), x.w.workflowOf(r), "", wire.SignalContinueAsNew, nil))
	x.w.eventually("the run does not continue as new", func() bool { return x.w.chain(temporal, x.w.workflowOf(r)) == 2 })
	x.kill(t)
	require.Contains(t, x.w.login(link).Title, "Connected")
	x.start(t)
	require.Equal(t, "done", x.w.finished(r).InvocationStatus)
	var authors []string
	for _, e := range r.events() {
		if len(e.Content.Parts) > 0 && e.Content.Parts[0].Text != "" {
			authors = append(authors, e.Author)
		}
	}
	round := []string{"critic", "reviser", "critic", "reviser", "grammar_check", "tone_check"}
	require.Equal(t, slices.Concat([]string{"user", "story_generator"}, round, []string{"story_generator"}, round), authors)
	require.Len(t, responses(r.events(), "read_style_guide"), 1)
	x.record(r, "story")
}
