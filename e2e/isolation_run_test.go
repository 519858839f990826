package e2e_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// strangersRun sends runs with somebody else's ids, in every place of a request, on both routes: the answer is that of ids that
// nobody has, and never a failure of ours.
func (p *people) strangersRun(alice apiClient, bobs belongings) {
	p.t.Helper()
	own := alice.startAs("me", "assistant", map[string]string{"task": "Go.", "mode": "chat"})
	p.eventually("her run does not end", func() bool { return own.status().State == "idle" })
	invocation := bobs.waits.status().Invocation
	event := bobs.waits.events()[0].ID
	text := map[string]any{"text": "Go."}
	reply := func(id string) map[string]any {
		return map[string]any{"functionResponse": map[string]any{"id": id, "name": "adk_request_credential", "response": map[string]any{"result": "done"}}}
	}
	for app, user := range map[string]string{"assistant": p.id("alice"), "second": p.id("alice")} {
		for name, c := range map[string]func(session, request, invocation, event string) map[string]any{
			"words": func(s, _, _, _ string) map[string]any { return map[string]any{"sessionId": s, "parts": []any{text}} },
			"a reply": func(s, r, _, _ string) map[string]any {
				return map[string]any{"sessionId": s, "parts": []any{reply(r)}}
			},
			"invocation": func(s, _, i, _ string) map[string]any { return map[string]any{"sessionId": s, "invocationId": i} },
			"own, reply": func(_, r, _, _ string) map[string]any {
				return map[string]any{"sessionId": own.id, "parts": []any{reply(r)}}
			},
			"own, resume": func(_, _, i, _ string) map[string]any { return map[string]any{"sessionId": own.id, "invocationId": i} },
			"own, event": func(_, r, _, e string) map[string]any {
				return map[string]any{"sessionId": own.id, "functionCallEventId": e, "parts": []any{reply(r)}}
			},
		} {
			for _, route := range []string{"/run", "/run_sse"} {
				send := func(session, request, invocation, event string) (int, string) {
					body := c(session, request, invocation, event)
					if parts := body["parts"]; parts != nil {
						body["newMessage"] = map[string]any{"role": "user", "parts": parts}
					}
					delete(body, "parts")
					body["appName"], body["userId"] = app, user
					status, said := alice.raw("POST", route, body)
					said = strings.NewReplacer(session, "S", request, "R", invocation, "I", event, "E").Replace(said)
					return status, requestID.ReplaceAllString(said, "RID")
				}
				what := fmt.Sprint(app, " ", route, ", ", name)
				there, said := send(bobs.waits.id, bobs.request, invocation, event)
				missing, same := send("made-up-session", "adk-made-up", "e-made-up", "made-up-event")
				require.Equal(p.t, missing, there, "%s: %s, %s", what, said, same)
				require.Equal(p.t, same, said, what)
				require.GreaterOrEqual(p.t, there, http.StatusBadRequest, what)
				require.Less(p.t, there, http.StatusInternalServerError, "%s: %s", what, said)
			}
		}
	}
}

// twins are sessions of hers that happen to be called as his: they run beside his.
func (p *people) twins(alice apiClient, bobs belongings) {
	p.t.Helper()
	text := map[string]any{"text": "Go."}
	for _, session := range []string{bobs.done.id, bobs.waits.id} {
		for app, user := range map[string]string{"assistant": p.id("alice"), "second": p.id("alice")} {
			status := alice.call("POST", "/apps/"+app+"/users/me/sessions/"+session, map[string]any{}, nil)
			require.Contains(p.t, []int{http.StatusOK, http.StatusConflict}, status)
			status, said := alice.raw("POST", "/run", map[string]any{
				"appName": app, "userId": user, "sessionId": session, "newMessage": map[string]any{"role": "user", "parts": []any{text}},
			})
			require.Equal(p.t, http.StatusOK, status, "%s %s: %s", app, session, said)
			require.NotContains(p.t, said, "says bob")
		}
	}
}
