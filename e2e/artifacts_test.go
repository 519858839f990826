package e2e_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// A worker is killed after its tool has saved an artifact, and before anything says so. One version exists: that of the repeated
// call or, where that may not be repeated, the one that was saved. The event that clients get names it, they read it over HTTP,
// nobody else does, and nothing of its content is in Temporal or in a log (I2, I6).
func TestArtifactsThroughAKill(t *testing.T) {
	t.Parallel()
	const content = "artifact-content"
	w := newWorld(t, options{
		agents: map[string]string{"assistant/root_agent.yaml": "name: assistant\nmodel: ${var:MODEL}\ninstruction: Write.\ntools:\n  - name: report\n  - name: draft\n"},
		script: "agents:\n  - agent: assistant\n    steps:\n" + indent(call("report")+call("draft")+text("Written."), "      "),
	})
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{}, &session))
	got := make(chan []event, 1)
	w.hold("artifact.saved")
	go func() {
		_, events := w.api.sse(message(session.ID, map[string]string{"text": "Write it."}), false)
		got <- events
	}()
	w.held("artifact.saved")
	require.NoError(t, w.Kill(stack.Worker))
	w.clear("artifact.saved")
	w.hold("artifact.saved") // the repeat passes it after the second kill only
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	w.held("artifact.saved")
	w.write("faults/artifact.saved.go", "")
	w.eventually("the second tool is not called", func() bool { return w.ran("user:draft.txt") == 1 || w.ran("report.txt") > 2 })
	require.Equal(t, 2, w.ran("report.txt"))

	deltas := map[string]map[string]int{}
	for _, e := range <-got {
		for _, p := range e.Content.Parts {
			if p.FunctionResponse != nil {
				deltas[p.FunctionResponse.Name] = e.Actions.ArtifactDelta
			}
		}
	}
	require.Equal(t, map[string]map[string]int{"report": {"report.txt": 0}, "draft": {"user:draft.txt": 0}}, deltas)

	path := "/apps/assistant/users/user/sessions/" + session.ID + "/artifacts"
	var names []string
	require.Equal(t, http.StatusOK, w.api.call("GET", path, nil, &names))
	require.Equal(t, []string{"report.txt", "user:draft.txt"}, names)
	for name, want := range map[string]string{"report.txt": content + " of run 2", "user%3Adraft.txt": content + " of run 1"} {
		var versions []int
		require.Equal(t, http.StatusOK, w.api.call("GET", path+"/"+name+"/versions", nil, &versions))
		require.Equal(t, []int{0}, versions, name)
		var part struct{ Text string }
		require.Equal(t, http.StatusOK, w.api.call("GET", path+"/"+name+"/versions/0", nil, &part))
		require.Equal(t, want, part.Text)
		for _, other := range []string{strings.Replace(path, "/users/user/", "/users/eve/", 1), strings.Replace(path, session.ID, "other", 1)} {
			require.Equal(t, http.StatusNotFound, w.api.call("GET", other+"/"+name, nil, nil))
		}
	}

	require.NoError(t, w.Stop(stack.All()...))
	for where, body := range w.stored() {
		if strings.HasPrefix(where, w.Database()) || where == "artifacts" || where == "memories" { // the store's own
			continue
		}
		require.False(t, bytes.Contains(body, []byte(content)), "an artifact's content stands in %s", where)
	}
}
