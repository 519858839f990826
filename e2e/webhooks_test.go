package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// hooks is an endpoint of an operator.
type hooks struct {
	mu     sync.Mutex
	down   bool
	ids    map[string]int // how often each webhook-id came
	taken  []string       // types that it took
	bodies []byte
}

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	check, bad := webhook.NewWebhook(hookSecret)
	var b struct{ Type string }
	if err != nil || bad != nil || check.Verify(body, r.Header) != nil || json.Unmarshal(body, &b) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.ids[r.Header.Get("webhook-id")]++
	h.bodies = append(h.bodies, body...)
	if h.down {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h.taken = append(h.taken, b.Type)
}

func (h *hooks) set(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// seen is how many webhook-ids came, and what was taken.
func (h *hooks) seen() (ids int, taken []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ids), append([]string{}, h.taken...)
}

// An endpoint is down when a run waits, and the server that told it is killed: another one tells it again, under the same id.
// Then keys are rotated under worker and server, and the login that was stored before is used and refreshed.
func TestWebhooksAndKeysOutliveServers(t *testing.T) {
	t.Parallel()
	h := &hooks{down: true, ids: map[string]int{}}
	endpoint := httptest.NewServer(h)
	t.Cleanup(endpoint.Close)
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, []byte("webhooks:\n- {name: ops, url: '"+endpoint.URL+"', secrets: ['${env:TARRY_SECRET_HOOK}'], apps: [assistant]}\n"+
		"- {name: others, url: '"+endpoint.URL+"/others', secrets: ['${env:TARRY_SECRET_HOOK}'], apps: [other]}\n"), 0o600))
	o := single(call("list_tickets") + text("ok"))
	o.env = append(o.env, "TARRY_WEBHOOKS="+file, "TARRY_SECRET_HOOK="+hookSecret)
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	link := w.waiting(r)
	require.Eventually(t, func() bool { ids, _ := h.seen(); return ids == 1 }, patience, 10*time.Millisecond)
	require.NoError(t, w.Kill(stack.Server))
	h.set(false)
	require.NoError(t, w.Start(t.Context(), stack.Server, stack.SecondServer))
	require.Eventually(t, func() bool { _, taken := h.seen(); return len(taken) == 1 }, patience, 10*time.Millisecond)
	w.login(link)
	require.Equal(t, "done", w.finished(r).InvocationStatus)
	require.Eventually(t, func() bool { _, taken := h.seen(); return len(taken) == 2 }, patience, 10*time.Millisecond)
	ids, taken := h.seen()
	require.Equal(t, 2, ids, "the same id when it came again")
	require.Equal(t, []string{"run.auth_required", "credential.granted"}, taken)
	require.NotContains(t, string(h.bodies), demo.DefaultMark)

	rotate := exec.CommandContext(t.Context(), filepath.Join(binaries, "starter"), "vault", "rotate", "--wait", patience.String()) //nolint:gosec // our own program
	rotate.Env = []string{"TARRY_DATABASE_URL=" + w.Database(), "TARRY_DATA_DIR=" + filepath.Dir(w.Database())}
	out, err := rotate.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "rotated: key")
	w.provider.RevokeAccessTokens()
	require.Equal(t, "done", w.finished(w.api.start("assistant", "Once more.")).InvocationStatus)
	require.Equal(t, 1, w.provider.Counts().Approvals, "nobody logs in again")
	require.Len(t, w.query(`SELECT DISTINCT substr(access, 1, 5) FROM grants`), 1)
}
