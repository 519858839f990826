package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// I5, M38: fifty runs of one person wait for one login: one link, one consent, fifty go on. Another person's run waits on,
// and a run that starts later does not ask.
func TestOneConsentForManyRuns(t *testing.T) {
	t.Parallel()
	const runs = 50
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	other := w.api.startAs("ben", "assistant", map[string]string{"task": "Go."})
	var all []runHandle
	for i := range runs {
		all = append(all, w.api.startAs("ann", "assistant", map[string]string{"task": fmt.Sprint("Go, ", i)}))
	}
	links, requests := map[string]bool{}, map[string]bool{}
	for _, r := range all {
		link := w.waiting(r)
		links[link] = true
		events := r.events()
		require.Len(t, asks(events), 1)
		requests[asks(events)[0]] = true
		require.Equal(t, link, authURI(t, events), "the event says what the status says")
	}
	require.Len(t, links, 1)
	require.Len(t, requests, runs, "each run has a request of its own")
	require.NotContains(t, links, w.waiting(other))
	for link := range links {
		page, err := w.open(link)
		require.NoError(t, err)
		require.Contains(t, page.Text, "50 runs wait")
		require.Contains(t, w.login(link).Title, "Connected")
	}
	for i, r := range all {
		require.Equal(t, "done", w.finished(r).InvocationStatus, "run %d", i)
		require.Len(t, responses(r.events(), "list_tickets"), 1)
	}
	require.Equal(t, 1, w.provider.Counts().Approvals)
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])
	require.Equal(t, "waiting_credential", other.status().State)

	later := w.api.startAs("ann", "assistant", map[string]string{"task": "Go."})
	require.Equal(t, "done", w.finished(later).InvocationStatus)
	require.Empty(t, asks(later.events()))
	w.loginAs(w.waiting(other), "bob")
	require.Equal(t, "done", w.finished(other).InvocationStatus)
}

func authURI(t *testing.T, events []event) (link string) {
	t.Helper()
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_credential" {
				config, _ := p.FunctionCall.Args["authConfig"].(map[string]any)
				exchanged, _ := config["exchangedAuthCredential"].(map[string]any)
				oauth, _ := exchanged["oauth2"].(map[string]any)
				link, _ = oauth["authUri"].(string)
			}
		}
	}
	return link
}

// The link outlives the run that it was made for, and a login that has begun is not lost with that run.
func TestSharedLinkOutlivesItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	first := w.api.start("assistant", "Go.")
	link := w.waiting(first)
	second, third := w.api.start("assistant", "Go too."), w.api.start("assistant", "And you.")
	require.Equal(t, link, w.waiting(second))
	require.Equal(t, link, w.waiting(third))
	browser, address := w.toCallback(link)
	for _, r := range []runHandle{first, second} {
		require.Equal(t, http.StatusAccepted, w.api.call("POST", r.path("/cancel"), nil, nil))
		require.Equal(t, "cancelled", w.finished(r).InvocationStatus)
		page, err := w.open(link)
		require.NoError(t, err)
		require.Contains(t, page.Title, "Connect to", "the link asks for who is left")
	}
	require.Contains(t, w.visit(browser, address).Title, "Connected")
	require.Equal(t, "done", w.finished(third).InvocationStatus)
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])
}

// A client of ADK answers each of several sessions with what that session was asked; the address that a login came back
// to is the same for all of them, and each takes it.
func TestADKRepliesToASharedLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("Four tickets.")))
	type asked struct {
		session string
		call    *function
	}
	var all []asked
	for range 2 {
		var session struct{ ID string }
		require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", nil, &session))
		_, events := w.api.sse(message(session.ID, map[string]string{"text": "Which tickets?"}), false)
		all = append(all, asked{session.ID, events[len(events)-1].Content.Parts[0].FunctionCall})
	}
	oauth := func(a asked) map[string]any {
		return a.call.Args["authConfig"].(map[string]any)["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
	}
	require.NotEqual(t, all[0].call.ID, all[1].call.ID)
	require.Equal(t, oauth(all[0])["authUri"], oauth(all[1])["authUri"])
	require.Equal(t, oauth(all[0])["state"], oauth(all[1])["state"])
	back := w.URL() + "/dev-ui/"
	w.login(oauth(all[0])["authUri"].(string) + "&redirect_uri=" + url.QueryEscape(back))
	for _, a := range all {
		oauth(a)["redirectUri"] = back
		oauth(a)["authResponseUri"] = back + "?code=tarry&state=" + oauth(a)["state"].(string)
		status, events := w.api.sse(message(a.session, map[string]any{"functionResponse": map[string]any{
			"id": a.call.ID, "name": a.call.Name, "response": a.call.Args["authConfig"],
		}}), false)
		require.Equal(t, http.StatusOK, status)
		require.NotEmpty(t, events)
		require.Equal(t, "Four tickets.", events[len(events)-1].Content.Parts[0].Text)
	}
}

// The server moves to another provider while runs wait: whoever opens the link then is shown the new one and confirms it
// before anything is sent, and the login there wakes the runs.
func TestServerMovesWhileRunsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	runs := []runHandle{w.api.start("assistant", "Go."), w.api.start("assistant", "Go too.")}
	link := w.waiting(runs[0])
	require.Equal(t, link, w.waiting(runs[1]))
	next, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, next.Start(""))
	t.Cleanup(func() { require.NoError(t, next.Close()) })
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.Provider = next })

	page := w.login(link)
	require.Contains(t, page.Text, "another place to log in")
	require.Contains(t, page.Title, strings.TrimPrefix(next.URL(), "http://"))
	require.Zero(t, w.provider.Counts().Approvals)
	require.Empty(t, next.Clients(), "nothing is registered before the person has seen it")
	require.Contains(t, w.login(link).Title, "Connected")
	for _, r := range runs {
		require.Equal(t, "done", w.finished(r).InvocationStatus)
	}
	require.Empty(t, w.provider.Counts().Token)
	require.Equal(t, 1, next.Counts().TokenOK["authorization_code"])
}
