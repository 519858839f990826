package adk_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

// sent is a body that ADK's web UI (@google/adk-devtools 2.0.0) sends, byte for byte but for ids, which the tests of package
// adkweb saw. Of a login it sends back the config that it got, with where the popup came back to.
func sent(t *testing.T, name, request, event string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "webui", name+".json"))
	require.NoError(t, err)
	config := streamtest.AuthConfig(request)
	oauth := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
	oauth["authResponseUri"] = streamtest.Public + "/dev-ui/?code=tarry-ticket-xkdlnhvluprhxpolu5q45z2h35&state=correlator-" + request
	oauth["redirectUri"] = streamtest.Public + "/dev-ui/"
	out := strings.NewReplacer("REQUEST", request, "EVENT", event, "AUTH_CONFIG", encode(t, config)).Replace(string(body))
	require.True(t, json.Valid([]byte(out)), out)
	return out
}

// A message of the web UI is taken and answered, and its session keeps the name that it was given.
func TestWebUIMessages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"message", "streaming", "after_rename"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.player("s1")
			status, body := b.do(http.MethodPatch, "/apps/tickets/users/ann/sessions/s1", sent(t, "rename", "", ""))
			require.Equal(t, http.StatusOK, status, body)
			got := b.sse(sent(t, name, "", ""))
			p.Take()
			want := texts(p.Say("Of course."))
			p.Finish(wire.EndDone, false)
			require.Equal(t, want, <-got)
			_, body = b.do(http.MethodGet, "/apps/tickets/users/ann/sessions", nil)
			require.Contains(t, body, `"displayName":"Hello. again"`)
		})
	}
	b := setup(t)
	status, body := b.do(http.MethodPost, "/apps/tickets/users/ann/sessions", sent(t, "create", "", ""))
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"displayName":"Plan the next release."`)
	require.Contains(t, body, `"events":[]`)
}

// What the web UI sends for each kind of question is an answer to it, or for a login an acknowledgement.
func TestWebUIReplies(t *testing.T) {
	t.Parallel()
	object := `{"type":"object","properties":{"days":{"type":"integer","minimum":1}},"required":["days"]}`
	asked := func(ask func(p *streamtest.Player)) func(b *bundle) (*streamtest.Player, string) {
		return func(b *bundle) (*streamtest.Player, string) {
			p := b.player("s1")
			p.Post("look", wire.ModeChat)
			p.Take()
			p.Say("", "call-1")
			ask(p)
			return p, "r1"
		}
	}
	login := asked(func(p *streamtest.Player) { p.Ask("call-1", "r1") })
	approval := asked(func(p *streamtest.Player) { p.AskApproval("call-1", "r1") })
	for name, c := range map[string]struct {
		ask  func(b *bundle) (*streamtest.Player, string)
		want auth.Status
	}{
		"login":   {login, auth.StatusPending},
		"word":    {login, auth.StatusPending},
		"approve": {approval, auth.StatusGranted},
		"reject":  {approval, auth.StatusDenied},
		"form":    {func(b *bundle) (*streamtest.Player, string) { return b.unanswered("s1", object), "r-s1" }, auth.StatusGranted},
		"result": {func(b *bundle) (*streamtest.Player, string) {
			p := b.player("s1")
			p.Post("look", wire.ModeChat)
			p.Take()
			p.Begin("adk-1", map[string]any{"status": "ordered"})
			return p, "adk-1"
		}, auth.StatusGranted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p, request := c.ask(b)
			view, err := b.store.Timeline(t.Context(), ann, "s1", 0)
			require.NoError(t, err)
			for _, event := range []string{view[len(view)-1].ID, "an-event-that-is-not-there"} {
				got := b.sse(sent(t, name, request, event))
				streamtest.Eventually(t, "the reply", func() bool { return b.status(request) == c.want })
				if c.want == auth.StatusPending {
					require.Empty(t, <-got, "the run waits on, and nothing is wrong")
				} else if event == view[len(view)-1].ID {
					p.Finish(wire.EndDone, false)
					require.Empty(t, <-got)
				} else {
					<-got // it ends before the test does
				}
			}
		})
	}
}
