package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
	"tarry/store/storetest"
)

// A client writes to a session's state while its run waits, goes on, and is killed: the run does not notice, its next invocation
// has all of it, and no write is lost. Traces show the wait, and ids that cannot be any are answered like those that are not.
func TestPatchBesideRuns(t *testing.T) { patches(t, "") }

func TestPatchBesideRunsOnPostgres(t *testing.T) { patches(t, storetest.Schema(t)) }

func patches(t *testing.T, database string) {
	t.Helper()
	t.Parallel()
	o := single(call("list_tickets") + text("first"))
	o.database = database
	o.env = append(o.env, "TARRY_API_PREFIX=/api")
	w := newWorld(t, o)
	var session struct {
		ID    string
		State map[string]any
	}
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{"state": map[string]any{"topic": "x"}}, &session))
	r := runHandle{w.api, "assistant", "user", session.ID}
	patch := func(key string) {
		status := w.api.call("PATCH", "/api"+r.path(""), map[string]any{"stateDelta": map[string]any{key: "written", "last": key}}, nil)
		require.Equal(t, http.StatusOK, status, key)
	}
	var wait sync.WaitGroup
	many := func(name string) {
		for i := range 5 {
			wait.Go(func() {
				for n := range 3 {
					patch(fmt.Sprintf("%s-%d-%d", name, i, n))
				}
			})
		}
	}
	patch("before")
	many("starting")
	status, _ := w.api.sse(message(session.ID, map[string]string{"text": "Which tickets?"}), false)
	require.Equal(t, http.StatusOK, status)
	wait.Wait()
	many("waiting")
	require.NoError(t, w.Kill(stack.Worker))
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	link := w.waiting(r)
	many("going-on")
	w.login(link)
	w.eventually("the invocation does not end", func() bool { return r.status().State == "idle" })
	wait.Wait()
	require.Equal(t, "first", r.status().Answer)
	patch("between")
	_, events := w.api.sse(message(session.ID, map[string]string{"text": "And then?"}), false)
	require.Equal(t, "first", events[len(events)-1].Content.Parts[0].Text)

	require.Equal(t, http.StatusOK, w.api.call("GET", r.path(""), nil, &session))
	require.Len(t, session.State, 2+3*15+2)
	require.Equal(t, "between", session.State["last"])
	patched := 0
	for _, e := range r.events() {
		if strings.HasPrefix(e.InvocationID, "p-") {
			patched++
		}
	}
	require.Equal(t, 47, patched)

	var spans []struct{ Name string }
	require.Equal(t, http.StatusOK, w.api.call("GET", "/api/dev/apps/assistant/debug/trace/session/"+session.ID, nil, &spans))
	var names []string
	for _, s := range spans {
		names = append(names, s.Name)
	}
	require.Contains(t, names, "wait_for_person login")
	require.Contains(t, names, "execute_tool list_tickets")
	w.oddIDs(r)
}

// oddIDs puts ids that cannot be any into every place of every route: nothing breaks, and nobody's things are touched.
func (w *world) oddIDs(r runHandle) {
	w.t.Helper()
	before := r.events()
	for name, id := range map[string]string{
		"dots": "%2e%2e", "slash": "a%2Fb", "up and away": "..%2F..%2Fadmin", "nul": "a%00b", "not UTF-8": "a%ffb", "newline": "a%0ab", "ten kilobytes": strings.Repeat("a", 10_240),
		"Unicode": url.PathEscape("ſé́\u202e🤖"), "quote": "a'%22%3B--", "percent": "%25s%25n", "plus": "+", "empty": "%20",
	} {
		for _, route := range apiRoutes(w.t) {
			method, path, _ := strings.Cut(route, " ")
			if !strings.Contains(path, "{") {
				continue
			}
			fill := func(app, user, session string) string {
				return strings.NewReplacer("{app}", app, "{user}", user, "{session}", session, "{event}", id, "{call}", id, "{request}", id, "{account}", id, "{name}", id, "{name...}", id, "{rest...}", id).Replace(path)
			}
			for _, path := range []string{fill(r.app, r.user, id), fill(r.app, id, "none"), fill(id, r.user, "none"), fill(r.app, r.user, "none")} {
				body := ""
				header := map[string]string{}
				if method != http.MethodGet {
					body, header["Content-Type"] = `{"stateDelta":{"x":1},"sessionId":"none","task":"x","confirmed":true,"response":{}}`, "application/json"
				}
				_, text := w.strike(name+" at "+route, attack{
					method: method, path: path, body: body, header: header, status: 404,
					accepts: []int{200, 202, 301, 307, 308, 400, 403, 405, 409, 413, 501},
				})
				require.Less(w.t, len(text), 10_000, "%s at %s", name, route)
			}
		}
	}
	require.Equal(w.t, before, r.events())
}
