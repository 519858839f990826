package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// Who may do what for whom, at every route that names a user, in its path or in its body: people for themselves, services for
// their own users in their own apps. What is somebody else's is 404 under one's own name, with the same words as what is not
// there at all.
func TestADKRoutesKnowWhoseIsWhat(t *testing.T) {
	t.Parallel()
	o := single(call("whoami") + text("ok"))
	o.agents["second/root_agent.yaml"] = strings.Replace(assistant(""), "name: assistant", "name: second", 1)
	o.script += "  - agent: second\n    steps: [{text: ok}]\n"
	p := newPeople(t, o, `services:
  - {name: shop, issuer: "ISSUER", client_id: shop-backend, apps: [assistant]}
  - {name: rival, issuer: "ISSUER", subject: rival-backend, apps: [assistant, second]}
`)
	alice, bob, shop, rival := p.program(demo.Subject("alice")), p.program(demo.Subject("bob")), p.program("shop-backend"), p.program("rival-backend")
	task := map[string]string{"task": "Go, says bob"}
	bobs, anns := bob.startAs("me", "assistant", task), shop.startAs("shop:ann", "assistant", task)
	p.waiting(bobs)
	p.waiting(anns)
	type victim struct {
		run        runHandle
		call, asks string
	}
	victims := map[string]victim{}
	for name, r := range map[string]runHandle{"bob": bobs, "ann": anns} {
		victims[name] = victim{r, r.events()[1].Content.Parts[0].FunctionCall.ID, asks(r.events())[0]}
	}
	before := p.counts()

	routes := []string{}
	for _, route := range apiRoutes(t) {
		// Services alone claim, and nobody sees a session without its user.
		if (strings.Contains(route, "{user}") || strings.Contains(route, "{session") || strings.HasSuffix(route, " /run") || strings.HasSuffix(route, " /run_sse")) &&
			!strings.HasSuffix(route, "/claim") {
			routes = append(routes, route)
		}
	}
	require.Greater(t, len(routes), 15)
	send := func(c apiClient, route, app, user string, v victim, snake bool) (int, string) {
		method, path, _ := strings.Cut(route, " ")
		fill := strings.NewReplacer("{app}", app, "{user}", user, "{session}", v.run.id, "{call}", v.call, "{request}", v.asks, "{account}", "a", "{event}", v.call, "{event_id}", v.call, "{session_id}", v.run.id, "{name...}", "f")
		body := map[string]any{
			"appName": app, "userId": user, "sessionId": v.run.id, "newMessage": map[string]any{"parts": []any{map[string]any{"text": "hi"}}},
			"stateDelta": map[string]any{"x": 1}, "task": "hi", "confirmed": true, "secret": "s3cr3t-s3cr3t", "response": map[string]any{}, "session": v.run.id,
			"filename": "f", "artifact": map[string]any{"text": "x"}, "invocation": v.run.status().Invocation, "mode": "chat",
		}
		if snake {
			body["app_name"], body["user_id"], body["session_id"], body["new_message"] = body["appName"], body["userId"], body["sessionId"], body["newMessage"]
			delete(body, "appName")
			delete(body, "userId")
			delete(body, "sessionId")
			delete(body, "newMessage")
		}
		status, text := c.raw(method, fill.Replace(path), body)
		return status, text
	}
	forbidden := []struct {
		name      string
		caller    apiClient
		app, user string
		of        string
	}{
		{"a person as another", alice, "assistant", p.id("bob"), "bob"},
		{"a person as a service's user", alice, "assistant", "shop:ann", "ann"},
		{"a person as a label", alice, "assistant", "user", "bob"},
		{"a service as a person", shop, "assistant", p.id("bob"), "bob"},
		{"a service as itself", shop, "assistant", "me", "ann"},
		{"a service as another's user", rival, "assistant", "shop:ann", "ann"},
		{"a service as nobody", shop, "assistant", "shop:", "ann"},
		{"a service in another app", shop, "second", "shop:ann", "ann"},
		{"a service by another's prefix", rival, "assistant", "rival:/../shop:ann", "ann"},
	}
	for _, route := range routes {
		for _, tc := range forbidden {
			if strings.Contains(tc.user, "/") && !strings.Contains(route, " /run") {
				continue // a path has no such user
			}
			if !strings.Contains(route, "{user}") && !strings.Contains(route, " /run") {
				continue // see below
			}
			for _, snake := range []bool{false, true} {
				status, body := send(tc.caller, route, tc.app, tc.user, victims[tc.of], snake)
				require.Contains(t, []int{http.StatusForbidden, http.StatusBadRequest}, status, "%s: %s: %s", route, tc.name, body)
				require.Equal(t, strings.Contains(tc.user, "/"), status == http.StatusBadRequest, "%s: %s: %s", route, tc.name, body)
				require.NotContains(t, body, "says bob")
			}
		}
		// Under one's own name, in the same app and in another, and with a service's other user.
		for _, tc := range []struct {
			name      string
			caller    apiClient
			app, user string
			of        string
		}{
			{"a person", alice, "assistant", "me", "bob"},
			{"a person in another app", bob, "second", "me", "bob"},
			{"a person in no app", alice, "nope", "me", "bob"},
			{"a service's other user", shop, "assistant", "shop:ben", "ann"},
			{"another service's user", rival, "assistant", "rival:ann", "ann"},
			{"the same letters in upper case", shop, "assistant", "shop:Ann", "ann"},
		} {
			v := victims[tc.of]
			mine := tc.caller == bob && tc.of == "bob" || tc.caller == shop && tc.of == "ann"
			if mine && !strings.Contains(route, "{user}") && !strings.Contains(route, " /run") {
				continue // the caller may act for whose it is, and the route names nobody else
			}
			if makes(route) > 0 || strings.HasSuffix(route, "/runs") {
				continue // it makes a session of one's own
			}
			status, body := send(tc.caller, route, tc.app, tc.user, v, false)
			missing, same := send(tc.caller, route, tc.app, tc.user, victim{runHandle{v.run.c, v.run.app, v.run.user, "made-up"}, "made-up-call", "adk-made-up"}, false)
			if strings.HasSuffix(route, "/sessions") || strings.HasSuffix(route, "/accounts") {
				require.Contains(t, []int{http.StatusOK, http.StatusNotFound, http.StatusForbidden}, status, "%s: %s: %s", route, tc.name, body)
			} else {
				require.GreaterOrEqual(t, status, 400, "%s: %s: %s", route, tc.name, body)
			}
			require.Equal(t, missing, status, "%s: %s tells whether an id exists", route, tc.name)
			blur := func(text string, ids ...string) string {
				for _, id := range ids {
					text = strings.ReplaceAll(text, id, "ID")
				}
				return requestID.ReplaceAllString(text, "RID")
			}
			require.Equal(t, blur(same, "made-up-call", "adk-made-up", "made-up"), blur(body, v.run.id, v.call, v.asks), "%s: %s", route, tc.name)
			require.NotContains(t, body, "says bob")
		}
	}
	require.Equal(t, before, p.counts())
	// And each of them still has what is theirs.
	for name, v := range victims {
		status, body := v.run.c.raw("GET", "/apps/assistant/users/"+v.run.user+"/sessions/"+v.run.id, nil)
		require.Equal(t, http.StatusOK, status, name)
		require.Contains(t, body, "says bob")
		require.Equal(t, "waiting_credential", v.run.status().State)
	}
}
